//! What befalls a program while it works.

use std::process::Stdio;
use std::sync::LazyLock;

use rustix::process::Signal;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::dice::Dice;
use super::facts::{self, Held, Part, everybody, limit, signal};
use crate::Room;

/// What befalls a server while it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    Fair,
    /// Processes of commands are killed and stopped.
    Members,
    /// Their guards are, too.
    Guards,
    /// Their supervisor is, too, and no guard.
    Supervisor,
    /// All of them; where there are cgroups, since without these nobody could see the end.
    All,
    /// It has no descriptor left, again and again.
    Descriptors,
    /// No file can grow.
    Disk,
    /// Its temporary directory is a disk of its own, and small. Fair, where nobody may mount one.
    Full,
    /// The server is stopped and goes on.
    Stopped,
}

impl Weather {
    pub(super) fn any(dice: &mut Dice) -> Weather {
        const ALL: [Weather; 9] = [
            Weather::Fair,
            Weather::Members,
            Weather::Guards,
            Weather::Supervisor,
            Weather::All,
            Weather::Descriptors,
            Weather::Disk,
            Weather::Full,
            Weather::Stopped,
        ];
        *dice.pick(&ALL)
    }

    /// The binary, to be started in a room in this weather.
    pub(super) fn dsh(self, room: &Room) -> Command {
        match self {
            Weather::Full if may_mount() => room.shell(&format!(
                "exec unshare -rm sh -c '{MOUNT} \"$TMPDIR\" && exec \"$0\" \"$@\"' \"$0\" \"$@\""
            )),
            _ => room.dsh(),
        }
    }

    /// Maybe something happens now; `later` has what passes by itself.
    pub(super) fn strikes(self, room: &Room, server: u32, dice: &mut Dice, later: &mut JoinSet<()>) {
        // Rolled in any weather, so that what comes after does not depend on who is there.
        let (strikes, who, stops) = (dice.percent(20), dice.below(1 << 20), dice.percent(30));
        let time = dice.millis(500);
        if !strikes {
            return;
        }
        match self {
            Weather::Fair | Weather::Full => {}
            Weather::Members | Weather::Guards | Weather::Supervisor | Weather::All => {
                let cgroups = self == Weather::All && !facts::cgroups(server).is_empty();
                let all = everybody(room, server);
                let hit: Vec<u32> = all
                    .into_iter()
                    .filter(|(_, part)| self.concerns(*part) || cgroups)
                    .map(|(pid, _)| pid)
                    .collect();
                if !hit.is_empty() {
                    let how = if stops { Signal::STOP } else { Signal::KILL };
                    signal(room, hit[who % hit.len()], how);
                }
            }
            Weather::Descriptors if stops => _ = limit(server, "nofile=1000"),
            Weather::Descriptors => _ = limit(server, &format!("nofile={}", 8 + who % 40)),
            Weather::Disk => _ = limit(server, &format!("fsize={}", 64_000 + who % 400_000)),
            Weather::Stopped => {
                if let Some(server) = Held::of(room, server) {
                    server.signal(Signal::STOP);
                    later.spawn(async move {
                        // sleep: the time it is stopped is what is tried.
                        tokio::time::sleep(time).await;
                        server.signal(Signal::CONT);
                    });
                }
            }
        }
    }

    /// All that can pass has passed. Who is stopped below the server stays so: it is the server that has to cope.
    pub(super) fn clears(self, room: &Room, server: u32) {
        match self {
            Weather::Fair
            | Weather::Full
            | Weather::Members
            | Weather::Guards
            | Weather::Supervisor
            | Weather::All => {}
            Weather::Descriptors => _ = limit(server, "nofile=1000"),
            Weather::Disk => _ = limit(server, "fsize=unlimited"),
            Weather::Stopped => _ = signal(room, server, Signal::CONT),
        }
    }

    fn concerns(self, part: Part) -> bool {
        match part {
            Part::Member => true,
            Part::Guard => self == Weather::Guards,
            Part::Supervisor => self == Weather::Supervisor,
        }
    }
}

/// Mounts a small disk, in a namespace of its own.
const MOUNT: &str = "mount -t tmpfs -o size=192k small";

fn may_mount() -> bool {
    static MAY: LazyLock<bool> = LazyLock::new(|| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["-rm", "sh", "-c", &format!("{MOUNT} /tmp")]);
        let mounts = unshare.stdout(Stdio::null()).stderr(Stdio::null()).status();
        mounts.is_ok_and(|status| status.success())
    });
    *MAY
}
