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
//! 3. A handle changes what it shares with the thread first, says so second and wakes it third; the thread clears the
//!    wake-up first, asks whether something was changed second and looks third. So no change is slept over.
//! 4. A tree is looked at when something of it is ready or due, or a handle changed something, and not because another
//!    tree ended: a thousand ends would be a million looks.
//!
//! The lock of arrivals is held over a push or a take; no other is taken under it. A step takes the lock of its tree, and
//! after that the one of the pool of guards, never both.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
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
    changed: Arc<AtomicBool>,
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

/// Makes the thread look at every tree again. There are none to look at before it was started.
pub(crate) fn wake() {
    if let Some(keeper) = KEEPER.get() {
        keeper.changed.store(true, Ordering::Release);
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
        let changed = Arc::new(AtomicBool::new(false));
        let round = Round {
            woken,
            arrivals: Arc::clone(&arrivals),
            changed: Arc::clone(&changed),
            watched: Vec::new(),
        };
        std::thread::Builder::new()
            .name("dsh-keeper".to_owned())
            .spawn(move || round.run())?;
        Ok(Keeper {
            arrivals,
            changed,
            waker,
        })
    }

    fn wake(&self) {
        // A full socket means that a wake-up is under way already.
        let _ = (&self.waker).write(&[0]);
    }
}

struct Round {
    woken: UnixStream,
    arrivals: Arc<Mutex<Vec<Box<dyn Watched>>>>,
    changed: Arc<AtomicBool>,
    watched: Vec<Entry>,
}

struct Entry {
    one: Box<dyn Watched>,
    /// When it wants to be looked at, whatever happens.
    due: Option<Instant>,
    /// A descriptor of it was ready, or could not be asked.
    is_ready: bool,
}

impl Round {
    fn run(mut self) {
        // No handler of the program runs here, and no SIGPIPE ends it.
        let _ = SigSet::all().thread_block();
        loop {
            self.clear_wake_ups();
            let changed = self.changed.swap(false, Ordering::Acquire);
            let arrivals = std::mem::take(&mut *lock(&self.arrivals));
            self.watched.extend(arrivals.into_iter().map(Entry::new));
            let now = Instant::now();
            self.watched
                .retain_mut(|entry| !(changed || entry.has_work(now)) || entry.step());
            self.sleep();
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

    /// Until a wake-up, an exit, room in a pipe, or the next time that something is due.
    fn sleep(&mut self) {
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.woken.as_fd(), PollFlags::IN)];
        let counts: Vec<usize> = self
            .watched
            .iter()
            .map(|entry| {
                let before = descriptors.len();
                entry.one.poll_descriptors(&mut descriptors);
                descriptors.len() - before
            })
            .collect();
        let due = self.watched.iter().filter_map(|entry| entry.due).min();
        let timeout = due.map(|due| timespec(due.saturating_duration_since(Instant::now())));
        let polled = poll(&mut descriptors, timeout.as_ref());
        let mut ready = descriptors.iter().skip(1).map(|one| !one.revents().is_empty());
        let ready: Vec<bool> = counts
            .into_iter()
            .map(|count| ready.by_ref().take(count).fold(false, |any, one| any | one))
            .collect();
        match polled {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => std::thread::park_timeout(BLIND_SLEEP),
        }
        let blind = polled.is_err();
        for (entry, ready) in self.watched.iter_mut().zip(ready) {
            entry.is_ready = ready || blind;
        }
    }
}

impl Entry {
    fn new(one: Box<dyn Watched>) -> Entry {
        Entry {
            one,
            due: None,
            is_ready: true,
        }
    }

    fn has_work(&self, now: Instant) -> bool {
        self.is_ready || self.due.is_some_and(|due| due <= now)
    }

    /// Says whether there is something left to watch.
    fn step(&mut self) -> bool {
        match contained_step(&mut self.one) {
            Progress::Gone => false,
            Progress::Waiting(until) => {
                self.due = until;
                true
            }
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
