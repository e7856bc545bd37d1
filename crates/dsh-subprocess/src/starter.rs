//! Threads that start processes: a start can take milliseconds on a busy machine, which an async thread does not have.
//!
//! They are ours because the runtime's own panic where the system gives no thread; a start is refused then. They come
//! when they are needed and go when they had nothing to do for a while.
//!
//! **Invariant**: a start that waits has a thread that will come to it. There is one for each, idle or new, or there are
//! as many as there may be, or the system gives no more and one is there that is busy now.
//!
//! One lock; a thread is made under it, and nothing else done.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::SigSet;

/// A start that hangs in the kernel holds its thread; so many can hang until others wait for them.
const MOST: usize = 64;
/// A thread without work goes after this time.
const REST: Duration = Duration::from_secs(10);

type Start = Box<dyn FnOnce() + Send>;

static CORE: Mutex<Core> = Mutex::new(Core {
    waiting: VecDeque::new(),
    threads: 0,
    idle: 0,
});
static WORK: Condvar = Condvar::new();

struct Core {
    waiting: VecDeque<Start>,
    threads: usize,
    /// Those that sleep, also when they were woken just now.
    idle: usize,
}

/// Does `start` soon, on a thread that may wait.
///
/// # Errors
///
/// When there is no such thread and the system gives none. `start` is dropped.
pub(crate) fn soon(start: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut core = lock();
    if core.waiting.len() >= core.idle && core.threads < MOST {
        match std::thread::Builder::new()
            .name("dsh-starter".to_owned())
            .spawn(work)
        {
            Ok(_) => core.threads += 1,
            Err(error) if core.threads == 0 => return Err(error),
            Err(_) => {}
        }
    }
    core.waiting.push_back(Box::new(start));
    WORK.notify_one();
    Ok(())
}

fn work() {
    // No handler of the program runs here.
    let _ = SigSet::all().thread_block();
    let mut core = lock();
    loop {
        if let Some(start) = core.waiting.pop_front() {
            drop(core);
            // Whoever waits for it learns that it is gone.
            let _ = catch_unwind(AssertUnwindSafe(start));
            core = lock();
            continue;
        }
        core.idle += 1;
        let waited = WORK.wait_timeout(core, REST);
        let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        core = woken;
        core.idle -= 1;
        if timeout.timed_out() && core.waiting.is_empty() {
            core.threads -= 1;
            return;
        }
    }
}

fn lock() -> MutexGuard<'static, Core> {
    CORE.lock().unwrap_or_else(PoisonError::into_inner)
}
