//! Starting a process under a guard.

use std::ffi::CString;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;

use super::Guarded;
use super::message::{Message, script_file};
use super::pool::{NoGuard, Pool, Ready, failed, wait_for};
use super::watch::Line;
use crate::cgroup::{Base, Home, Room, impose, prepare_base, prepare_home};
use crate::error::{SpawnError, is_shortage};
use crate::keeper;
use crate::launcher::Launched;
use crate::limits::{LimitError, Limits};
use crate::prepare::Prepared;
use crate::spec::ProcessSpec;
use crate::tree::ProcessTree;
use crate::wire::{Received, Report, Stage, Wait, receive};

/// How many guards and supervisors may be lost in a row before a start is given up on.
const ATTEMPTS: u32 = 8;

/// How long a start in a frozen cgroup is waited for, which is thawed again and again meanwhile.
const FROZEN: Duration = Duration::from_secs(5);

/// The guards of a launcher. The supervisor is started with the first process, and again when it is lost.
#[derive(Debug)]
pub(crate) struct Guards {
    program: CString,
    /// Where cgroups may be made.
    base: Option<Base>,
    pool: Mutex<Option<Arc<Pool>>>,
}

impl Guards {
    pub(crate) fn new(program: CString, base: Option<Base>) -> Guards {
        Guards {
            program,
            base,
            pool: Mutex::new(None),
        }
    }

    /// Starts a process, for somebody who may give it up meanwhile.
    pub(crate) fn launch(
        &self,
        mut spec: ProcessSpec,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Launched, SpawnError> {
        let script = spec.bash_command.take().map(script_file).transpose()?;
        let (kill_bound, limits) = (spec.kill_bound, spec.limits);
        let prepared = Prepared::new(spec)?;
        let keeper = keeper::get().map_err(|error| SpawnError::resources("the watching thread", error))?;
        let mut message = Message::new(&prepared, script.as_ref(), kill_bound, &limits)?;
        let ordered = self.order(&mut message, &limits)?;
        let started = await_start(&ordered, &prepared, given_up);
        let Heard {
            leader,
            place,
            report,
        } = started.inspect_err(|_| ordered.pool.replace())?;
        let Ordered { ready, pool, room } = ordered;
        let frozen = room.as_ref().filter(|_| place == Place::Frozen);
        let frozen = frozen.and_then(|room| Some(self.base.as_ref()?.path().join(room.name())));
        let room = room.filter(|_| place != Place::Elsewhere).map(Arc::new);
        let way = (Arc::clone(&ready), room.clone());
        let guarded = Arc::new(Guarded::new(way, pool, leader, kill_bound, limits));
        let line = Line::new(Arc::clone(&guarded), (ready, room), prepared.feed, report);
        keeper.watch(Box::new(line));
        let tree = ProcessTree::of_guard(guarded);
        if let Some(cgroup) = frozen {
            // Whoever stands still in it goes with this tree.
            return Err(SpawnError::Frozen { cgroup });
        }
        Ok(Launched {
            tree,
            stdin: prepared.stdin,
            stdout: prepared.stdout,
            stderr: prepared.stderr,
        })
    }

    /// Whether commands can be held to these limits.
    pub(crate) fn check_limits(&self, limits: &Limits) -> Result<(), LimitError> {
        if limits.is_none() {
            return Ok(());
        }
        let base = self.limiting_base()?;
        let unusable = |error| LimitError::NoCgroup {
            missing: format!("{}: {error}", base.path().display()),
        };
        Home::create(base)
            .and_then(|home| home.remove())
            .map_err(unusable)?;
        prepare_base(base, limits)
    }

    fn limiting_base(&self) -> Result<&Base, LimitError> {
        self.base.as_ref().ok_or_else(|| LimitError::NoCgroup {
            missing: "none was found, or they are off".to_owned(),
        })
    }

    /// A cgroup for a command, limited as it has to be.
    fn room(&self, pool: &Pool, limits: &Limits) -> Result<Option<Room>, LimitError> {
        let rooms = pool.rooms();
        let room = rooms.and_then(|rooms| rooms.take());
        if limits.is_none() {
            return Ok(room);
        }
        let base = self.limiting_base()?;
        let (Some(rooms), Some(room)) = (rooms, room) else {
            return Err(LimitError::NoCgroup {
                missing: format!("none can be made in {}", base.path().display()),
            });
        };
        prepare_base(base, limits)?;
        prepare_home(rooms.home(), base, limits)?;
        impose(&*room, limits)?;
        Ok(Some(room))
    }

    /// Gives the order to a guard that is surely there.
    fn order(&self, message: &mut Message<'_>, limits: &Limits) -> Result<Ordered, SpawnError> {
        for _ in 0..ATTEMPTS {
            let pool = self.pool()?;
            let room = self.room(&pool, limits)?;
            let ready = match pool.take() {
                Ok(ready) => ready,
                Err(NoGuard::Lost) => continue,
                Err(NoGuard::NeverHeard) => {
                    let source =
                        io::Error::other("it says nothing; does it call guard_entry() first in main?");
                    return Err(failed(&self.program, source));
                }
                Err(NoGuard::Refused(error)) => return Err(SpawnError::resources("a guard", error)),
            };
            // A guard that was lost while it waited has a report of that, and has run nothing.
            let waits = matches!(receive(&ready.socket, Wait::No), Ok(Received::Nothing));
            if !waits {
                pool.replace();
                continue;
            }
            match message.send(&ready.socket, room.as_deref())? {
                Ok(()) => {
                    return Ok(Ordered { ready, pool, room });
                }
                // It went just now.
                Err(Errno::PIPE | Errno::CONNRESET) => pool.replace(),
                Err(errno) => {
                    pool.replace();
                    return Err(SpawnError::resources("an order to a guard", errno));
                }
            }
        }
        let source = io::Error::other("it ends at once; does it call guard_entry() first in main?");
        Err(failed(&self.program, source))
    }

    fn pool(&self) -> Result<Arc<Pool>, SpawnError> {
        let mut current = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = current.as_ref().filter(|pool| !pool.is_lost()) {
            return Ok(Arc::clone(pool));
        }
        // What waits in the socket of a lost one ends with it.
        *current = None;
        let pool = Arc::new(Pool::start(&self.program, self.base.as_ref())?);
        *current = Some(Arc::clone(&pool));
        Ok(pool)
    }
}

/// Who got an order, and the cgroup that came with it.
struct Ordered {
    ready: Arc<Ready>,
    pool: Arc<Pool>,
    room: Option<Room>,
}

/// What was heard first of a program that was started.
struct Heard {
    leader: Pid,
    place: Place,
    /// What there is to hear besides.
    report: Option<Report>,
}

/// Where a program was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the cgroup that came with the order, if one did.
    AsOrdered,
    Elsewhere,
    /// In the cgroup that came with the order, where it stands still and will not run.
    Frozen,
}

/// Waits until the program runs, or does not. When it was given up nobody waits for one that hangs in the kernel: its tree
/// is ended like any other.
///
/// A command can kill its guard before that has told anything. The program was started all the same, so this is no
/// failure to start; all that is not known is its number, and the guard's stands for it.
fn await_start(
    ordered: &Ordered,
    prepared: &Prepared,
    given_up: &dyn Fn() -> bool,
) -> Result<Heard, SpawnError> {
    let Ordered { ready, pool, room } = ordered;
    let since = Instant::now();
    let mut place = Place::AsOrdered;
    loop {
        let report = match receive(&ready.socket, Wait::No) {
            Ok(Received::Message(message, _)) => Report::decode(&message),
            Ok(Received::Nothing) => {
                if !wait_for(&ready.socket) {
                    ready.go_on();
                    pool.go_on();
                    if let Some(room) = room {
                        room.thaw();
                    }
                    let is_frozen = |room: &Room| since.elapsed() >= FROZEN && room.is_frozen();
                    if place == Place::AsOrdered && room.as_ref().is_some_and(is_frozen) {
                        place = Place::Frozen;
                    }
                    if place == Place::Frozen || given_up() {
                        return Ok(Heard {
                            leader: ready.guard,
                            place,
                            report: None,
                        });
                    }
                }
                continue;
            }
            Ok(Received::End) | Err(_) => None,
        };
        return match report {
            Some(Report::OutOfCgroup) => {
                place = Place::Elsewhere;
                continue;
            }
            Some(Report::NotStarted { stage, errno }) => Err(refusal(stage, errno, prepared)),
            Some(Report::Started { leader }) => Ok(Heard {
                leader: i32::try_from(leader)
                    .ok()
                    .and_then(Pid::from_raw)
                    .unwrap_or(ready.guard),
                place,
                report: None,
            }),
            report => Ok(Heard {
                leader: ready.guard,
                place,
                report,
            }),
        };
    }
}

fn refusal(stage: Stage, errno: i32, prepared: &Prepared) -> SpawnError {
    let source = io::Error::from_raw_os_error(errno);
    match stage {
        Stage::Spawn => prepared.blame(source),
        Stage::Script => SpawnError::resources("a view of the command in /proc", source),
        Stage::Order => SpawnError::resources("a process", source),
        Stage::Cgroup if is_shortage(&source) => SpawnError::resources("a process", source),
        Stage::Cgroup => SpawnError::Limits(LimitError::NoCgroup {
            missing: format!("no process can be started in it: {source}"),
        }),
    }
}
