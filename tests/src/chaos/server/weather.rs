//! What befalls a connection, and how it ends.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::Room;
use crate::chaos::dice::Dice;
use crate::chaos::facts::{self, Held, Part, everybody, limit, signal};
use crate::chaos::wire::Wire;

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
    /// The server is stopped and goes on.
    Stopped,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// When all is quiet, its input ends.
    Quiet,
    /// In the middle, its input ends.
    Input,
    /// In the middle, nobody reads its output any more; then its input ends.
    Output,
    /// In the middle, by this signal, which it takes for a request.
    Terminated,
    Interrupted,
    /// In the middle, by a signal that it cannot take.
    Killed,
}

impl Weather {
    pub(super) fn any(dice: &mut Dice) -> Weather {
        const ALL: [Weather; 8] = [
            Weather::Fair,
            Weather::Members,
            Weather::Guards,
            Weather::Supervisor,
            Weather::All,
            Weather::Descriptors,
            Weather::Disk,
            Weather::Stopped,
        ];
        *dice.pick(&ALL)
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
            Weather::Fair => {}
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
            Weather::Fair | Weather::Members | Weather::Guards | Weather::Supervisor | Weather::All => {}
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

impl Ending {
    pub(super) fn any(dice: &mut Dice) -> Ending {
        // Only a quiet end shows that everything was told.
        const OTHERS: [Ending; 5] = [
            Ending::Input,
            Ending::Output,
            Ending::Terminated,
            Ending::Interrupted,
            Ending::Killed,
        ];
        let other = *dice.pick(&OTHERS);
        if dice.percent(50) { Ending::Quiet } else { other }
    }

    /// Whether it comes in the middle of everything.
    pub(super) fn is_abrupt(self) -> bool {
        self != Ending::Quiet
    }

    pub(super) async fn begins(self, wire: &mut Wire, room: &Room, server: u32) {
        match self {
            Ending::Quiet | Ending::Input => wire.close_input(),
            Ending::Output => {
                wire.close_output().await;
                wire.close_input();
            }
            Ending::Terminated => _ = signal(room, server, Signal::TERM),
            Ending::Interrupted => _ = signal(room, server, Signal::INT),
            Ending::Killed => _ = signal(room, server, Signal::KILL),
        }
    }

    /// Whether a server ends in this way then.
    pub(super) fn fits(self, status: ExitStatus) -> bool {
        match self {
            Ending::Quiet | Ending::Input => status.code() == Some(0),
            // Whether it meets the closed pipe first is a race.
            Ending::Output => status.code().is_some(),
            Ending::Terminated => status.code() == Some(143),
            Ending::Interrupted => status.code() == Some(130),
            Ending::Killed => status.signal() == Some(9),
        }
    }
}
