//! Starting a process under a guard.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::Guarded;
use super::message::{Message, script_file};
use super::pool::{NoGuard, Pool, failed, wait_for};
use super::ready::Ready;
use super::watch::Line;
use crate::cgroup::{Base, Home, Room, impose, prepare_base, prepare_home};
use crate::error::{SpawnError, is_shortage};
use crate::launcher::Launched;
use crate::limits::{LimitError, Limits};
use crate::prepare::Prepared;
use crate::spec::ProcessSpec;
use crate::tree::ProcessTree;
use crate::wire::{Received, Report, Stage, receive};
use crate::{keeper, sys};

/// How many supervisors may be lost in a row before a start is given up on.
const SUPERVISORS: u32 = 8;
/// And how many guards: more than stand ready, since somebody may have killed all of them.
const GUARDS: u32 = 32;
/// How long a guard may leave its order unread.
const UNREAD: Duration = Duration::from_secs(10);

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
        let (ordered, heard) = self.begin(&mut message, &limits, (&prepared, given_up))?;
        let Heard {
            leader,
            place,
            report,
        } = heard;
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

    /// Has a guard start the program. One that has started nothing, for whatever reason, makes place for another one.
    fn begin(
        &self,
        message: &mut Message<'_>,
        limits: &Limits,
        (prepared, given_up): (&Prepared, &dyn Fn() -> bool),
    ) -> Result<(Ordered, Heard), SpawnError> {
        let mut idle = None;
        let (mut supervisors, mut guards) = (0, 0);
        while supervisors < SUPERVISORS && guards < GUARDS {
            let pool = self.pool()?;
            let room = self.room(&pool, limits)?;
            let ready = match pool.take() {
                Ok(ready) => ready,
                Err(NoGuard::Lost) => {
                    supervisors += 1;
                    continue;
                }
                Err(NoGuard::NeverHeard) => {
                    let source =
                        io::Error::other("it says nothing; does it call guard_entry() first in main?");
                    return Err(failed(&self.program, source));
                }
                Err(NoGuard::Refused(error)) => return Err(SpawnError::resources("a guard", error)),
            };
            let ordered = Ordered { ready, pool, room };
            match ordered.start(message, prepared, given_up) {
                Ok(Started::Yes(heard)) => return Ok((ordered, heard)),
                Ok(Started::No(why)) => {
                    if why == Idle::Silent {
                        // The others will be no better.
                        ordered.pool.give_up();
                    }
                    idle = Some(why);
                }
                Err(error) => {
                    ordered.pool.replace();
                    return Err(error);
                }
            }
            ordered.pool.replace();
            guards += 1;
        }
        let source = match idle {
            Some(why) if guards == GUARDS => {
                io::Error::other(format!("its guards {why} before they start anything"))
            }
            _ => io::Error::other("it ends at once; does it call guard_entry() first in main?"),
        };
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

/// What came of an order.
enum Started {
    Yes(Heard),
    /// Nothing, for certain.
    No(Idle),
}

/// Why a guard has started nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Idle {
    Killed,
    Signalled,
    Changed,
    Silent,
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Idle::Killed => "are killed",
            Idle::Signalled => "are sent signals",
            Idle::Changed => "are given other limits or priorities",
            Idle::Silent => "do not run",
        })
    }
}

impl Ordered {
    /// Gives the order, if the guard is there, and waits for what comes of it.
    fn start(
        &self,
        message: &mut Message<'_>,
        prepared: &Prepared,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Started, SpawnError> {
        let waits = matches!(receive(&self.ready.socket), Ok(Received::Nothing));
        if !waits {
            return Ok(Started::No(Idle::Killed));
        }
        match message.send(&self.ready.socket, self.room.as_deref())? {
            Ok(()) => self.await_start(prepared, given_up),
            // It went just now.
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(Started::No(Idle::Killed)),
            Err(errno) => Err(SpawnError::resources("an order to a guard", errno)),
        }
    }

    /// Waits until the program runs, or does not. When it was given up nobody waits for one that hangs in the kernel: its
    /// tree is ended like any other.
    ///
    /// A command can kill its guard before that has told anything. The program was started all the same, so this is no
    /// failure to start; all that is not known is its number, and the guard's stands for it.
    fn await_start(&self, prepared: &Prepared, given_up: &dyn Fn() -> bool) -> Result<Started, SpawnError> {
        let since = Instant::now();
        let mut place = Place::AsOrdered;
        loop {
            let report = match receive(&self.ready.socket) {
                Ok(Received::Message(message, _)) => Report::decode(&message),
                Ok(Received::Nothing) if wait_for(&self.ready.socket) => continue,
                Ok(Received::Nothing) => {
                    self.urge();
                    let waited = since.elapsed();
                    if waited >= UNREAD && self.is_out_of_order() {
                        return Ok(Started::No(Idle::Silent));
                    }
                    if place == Place::AsOrdered && waited >= FROZEN && self.is_frozen() {
                        place = Place::Frozen;
                    }
                    if place != Place::Frozen && !given_up() {
                        continue;
                    }
                    None
                }
                Ok(Received::End) | Err(_) => None,
            };
            let (leader, report) = match report {
                Some(Report::OutOfCgroup) => {
                    place = Place::Elsewhere;
                    continue;
                }
                Some(Report::Unread) => return Ok(Started::No(Idle::Killed)),
                Some(Report::NotStarted { stage, errno }) => return not_started(stage, errno, prepared),
                Some(Report::Started { leader }) => {
                    let leader = i32::try_from(leader).ok().and_then(Pid::from_raw);
                    (leader.unwrap_or(self.ready.guard), None)
                }
                report => (self.ready.guard, report),
            };
            return Ok(Started::Yes(Heard {
                leader,
                place,
                report,
            }));
        }
    }

    /// Lets everybody go on who may have been stopped.
    fn urge(&self) {
        self.ready.go_on();
        self.pool.go_on();
        if let Some(room) = &self.room {
            room.thaw();
        }
    }

    fn is_frozen(&self) -> bool {
        self.room.as_ref().is_some_and(|room| room.is_frozen())
    }

    /// Kills a guard that has left its order unread all this time. If it has not read it then, it never will.
    fn is_out_of_order(&self) -> bool {
        let has_unread = || sys::has_unread(self.ready.socket.as_fd());
        if !has_unread() {
            return false;
        }
        self.ready.signal(Signal::KILL);
        // Should it run just now, it does not get far. What is there to hear is heard by whoever waits.
        !wait_for(&self.ready.socket) && has_unread()
    }
}

fn not_started(stage: Stage, errno: i32, prepared: &Prepared) -> Result<Started, SpawnError> {
    let source = io::Error::from_raw_os_error(errno);
    Err(match stage {
        Stage::Signalled => return Ok(Started::No(Idle::Signalled)),
        Stage::Changed => return Ok(Started::No(Idle::Changed)),
        Stage::Spawn => prepared.blame(source),
        Stage::Script => SpawnError::resources("a view of the command in /proc", source),
        Stage::Order => SpawnError::resources("a process", source),
        Stage::Cgroup if is_shortage(&source) => SpawnError::resources("a process", source),
        Stage::Cgroup => SpawnError::Limits(LimitError::NoCgroup {
            missing: format!("no process can be started in it: {source}"),
        }),
    })
}
