//! The one thread that watches every tree of this program: it learns of exits, feeds standard input, sends
//! the KILLs that are due, sees groups empty and reaps their leaders; where a guard does that, it hears it.
//!
//! A thread and not a task, so that a tree is ended and reaped even while the runtime shuts down, and so
//! that a blocked or paused runtime delays no KILL. It starts with the first spawn and lives as long as the
//! program; it sleeps in `poll` with nothing to do, and all its signals are blocked.
//!
//! **Invariants**
//!
//! 1. Only this thread reaps what it watches, and only a leader or a supervisor that it names: never `waitpid(-1)`.
//! 2. What is watched is dropped from the list only when it says that nothing is left: a group when it was let go, so
//!    every leader is reaped; a guarded tree when its end was told, so its cgroup is removed after that.
//! 3. A handle changes what it shares with the thread first and wakes it second; the thread clears the
//!    wake-up first and looks second. So no change is slept over.
//!
//! The lock of arrivals is held over a push or a take; no other is taken under it. A step takes the lock of its tree, and
//! after that the one of the pool of guards, never both.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::wait::timespec;

/// How long to sleep when the system refuses to poll (more trees than its descriptor limit allows now).
const BLIND_SLEEP: Duration = Duration::from_millis(20);

/// When a tree is looked at again after a panic.
const AFTER_PANIC: Duration = Duration::from_millis(500);

/// What the thread watches.
pub(crate) trait Watched: Send {
    /// Does what is due, and says when more will be.
    fn step(&mut self, now: Instant) -> Progress;

    /// What to wait for.
    fn poll_descriptors<'a>(&'a self, descriptors: &mut Vec<PollFd<'a>>);
}

/// What a step came to.
pub(crate) enum Progress {
    /// There is nothing left to watch.
    Gone,
    /// Look again when a descriptor is ready, or at this time.
    Waiting(Option<Instant>),
}

static KEEPER: OnceLock<Keeper> = OnceLock::new();

/// The way to the thread.
pub(crate) struct Keeper {
    arrivals: Arc<Mutex<Vec<Box<dyn Watched>>>>,
    waker: UnixStream,
}

/// The thread, started if this is the first call.
pub(crate) fn get() -> io::Result<&'static Keeper> {
    static START: Mutex<()> = Mutex::new(());
    if let Some(keeper) = KEEPER.get() {
        return Ok(keeper);
    }
    let _one_at_a_time = START.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(keeper) = KEEPER.get() {
        return Ok(keeper);
    }
    let keeper = Keeper::start()?;
    Ok(KEEPER.get_or_init(|| keeper))
}

/// Makes the thread look again. There are no trees to look at before it was started.
pub(crate) fn wake() {
    if let Some(keeper) = KEEPER.get() {
        keeper.wake();
    }
}

impl Keeper {
    /// Watches it from now on until it says that there is nothing left to watch.
    pub(crate) fn watch(&self, arrival: Box<dyn Watched>) {
        lock(&self.arrivals).push(arrival);
        self.wake();
    }

    fn start() -> io::Result<Keeper> {
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let round = Round {
            woken,
            arrivals: Arc::clone(&arrivals),
            watched: Vec::new(),
        };
        std::thread::Builder::new()
            .name("dsh-keeper".to_owned())
            .spawn(move || round.run())?;
        Ok(Keeper { arrivals, waker })
    }

    fn wake(&self) {
        // A full socket means that a wake-up is under way already.
        let _ = (&self.waker).write(&[0]);
    }
}

struct Round {
    woken: UnixStream,
    arrivals: Arc<Mutex<Vec<Box<dyn Watched>>>>,
    watched: Vec<Box<dyn Watched>>,
}

impl Round {
    fn run(mut self) {
        // No handler of the program runs here, and no SIGPIPE ends it.
        let _ = SigSet::all().thread_block();
        loop {
            self.clear_wake_ups();
            self.watched.append(&mut lock(&self.arrivals));
            let mut next = None;
            self.watched.retain_mut(|one| match contained_step(one) {
                Progress::Gone => false,
                Progress::Waiting(until) => {
                    next = [next, until].into_iter().flatten().min();
                    true
                }
            });
            self.sleep(next);
        }
    }

    fn clear_wake_ups(&mut self) {
        let mut bytes = [0; 64];
        while self
            .woken
            .read(&mut bytes)
            .is_ok_and(|count| count == bytes.len())
        {}
    }

    /// Until a wake-up, an exit, room in a pipe, or the given time.
    fn sleep(&self, until: Option<Instant>) {
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.woken.as_fd(), PollFlags::IN)];
        for one in &self.watched {
            one.poll_descriptors(&mut descriptors);
        }
        let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => std::thread::park_timeout(BLIND_SLEEP),
        }
    }
}

/// A panic (of a log subscriber, say) must not cost the other trees their watch, nor this one its own.
fn contained_step(one: &mut Box<dyn Watched>) -> Progress {
    let step = AssertUnwindSafe(|| one.step(Instant::now()));
    catch_unwind(step).unwrap_or_else(|_| Progress::Waiting(Some(Instant::now() + AFTER_PANIC)))
}

fn lock(arrivals: &Mutex<Vec<Box<dyn Watched>>>) -> MutexGuard<'_, Vec<Box<dyn Watched>>> {
    arrivals.lock().unwrap_or_else(PoisonError::into_inner)
}
