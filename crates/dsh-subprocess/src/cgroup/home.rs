//! The directory of one supervisor's cgroups, and what becomes of it.
//!
//! A home is locked by this program and its supervisor together: they share one open file, and the kernel takes the
//! lock away when the last of the two is gone, however it went. Whoever gets the lock of a home that exists may remove
//! it. A creator that lost its new home to a sweeper between making and locking it sees that, and makes another one.
//!
//! A second lock, on a file of the home, is the program's alone and taken first: see `left`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, flock, mkdirat};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::command::Cgroup;
use super::files::{await_nobody, directories, has, is_gone, open, open_file, place, remove, write};
use super::find::Base;
use super::left::Left;
use crate::keeper;

const PREFIX: &str = "dsh-commands-";
/// Attempts to make a home while sweepers of other programs get in the way.
const ATTEMPTS: u32 = 16;
/// How long those who were killed just now are waited for.
const PATIENCE: Duration = Duration::from_millis(50);

/// A directory in which only cgroups of commands are.
#[derive(Debug)]
pub(crate) struct Home {
    directory: OwnedFd,
    name: String,
    /// Open, because it is looked at before each start.
    freeze: Option<OwnedFd>,
    /// The lock that the supervisor does not share.
    program: Option<OwnedFd>,
}

/// What a lock that is not waited for came to.
enum Locking {
    Done,
    Others,
}

impl Home {
    /// Makes one, and removes those in the same base whose programs and supervisors are gone.
    ///
    /// # Errors
    ///
    /// Where no directory can be made, or cgroups cannot be killed (before Linux 5.14).
    pub(crate) fn create(base: &Base) -> io::Result<Home> {
        let base = base.open()?;
        sweep(&base);
        for _ in 0..ATTEMPTS {
            let name = make_in(&base)?;
            let Some(mut home) = Home::open(&base, name)? else {
                continue;
            };
            home.program = home.lock_as_program()?;
            if home.program.is_none() || matches!(lock(&home.directory)?, Locking::Others) {
                continue;
            }
            home.freeze = open_file(&home.directory, "cgroup.freeze").ok();
            if has(&home.directory, c"cgroup.kill") {
                return Ok(home);
            }
            if has(&home.directory, c"cgroup.procs") {
                home.remove()?;
                return Err(io::Error::other("the kernel cannot kill a cgroup"));
            }
        }
        Err(io::Error::other("other programs keep removing it"))
    }

    /// A home that was made elsewhere and is locked by whoever sent it.
    pub(crate) fn shared(directory: OwnedFd, name: String) -> Home {
        Home {
            directory,
            name,
            freeze: None,
            program: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Lets commands go on that one of them has frozen here, all of them and those that are started next. Whoever is
    /// started in a frozen cgroup stands still before its program runs, and its guard with it.
    pub(crate) fn thaw(&self) {
        let mut frozen = [0; 1];
        let is_thawed = self.freeze.as_ref().is_some_and(|freeze| {
            matches!(rustix::io::pread(freeze, &mut frozen, 0), Ok(1)) && frozen == *b"0"
        });
        if !is_thawed {
            let _ = write(&self.directory, "cgroup.freeze", "0");
        }
    }

    /// A new cgroup for a command.
    pub(crate) fn make(&self, number: u32) -> io::Result<()> {
        Ok(mkdirat(
            &self.directory,
            number.to_string(),
            Mode::from_raw_mode(0o755),
        )?)
    }

    pub(crate) fn find(&self, number: u32) -> io::Result<Cgroup> {
        place(&self.directory, &number.to_string()).map(Cgroup::new)
    }

    /// Removes the cgroup of this number. It stays while somebody lives in it.
    pub(crate) fn discard(&self, number: u32) -> io::Result<()> {
        remove(&self.directory, &number.to_string())
    }

    /// Kills whoever is left in it, and removes it with all cgroups of commands. One that is gone was removed.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match self.try_remove() {
            Err(error) if is_gone(&error) => Ok(()),
            result => result,
        }
    }

    /// Kills whoever is in it, and gives them a moment to be gone.
    pub(super) fn kill(&self) -> io::Result<()> {
        // Before Linux 5.14 it cannot be killed, and is made for nobody.
        let _ = write(&self.directory, "cgroup.kill", "1");
        await_nobody(&self.directory, PATIENCE)
    }

    fn try_remove(&self) -> io::Result<()> {
        let base = place(&self.directory, "..")?;
        self.kill()?;
        let names = directories(&self.directory)?;
        names.iter().try_for_each(|name| remove(&self.directory, name))?;
        remove(&base, &self.name)
    }

    /// `None` when it is gone, or somebody else's.
    fn open(base: &OwnedFd, name: String) -> io::Result<Option<Home>> {
        let directory = match open(base, &name) {
            Err(error) if is_gone(&error) => return Ok(None),
            opened => opened?,
        };
        // Nobody else's, whatever its name.
        let is_ours = rustix::fs::fstat(&directory)?.st_uid == rustix::process::geteuid().as_raw();
        Ok(is_ours.then(|| Home::shared(directory, name)))
    }

    /// `None` when another program has that lock, or the home is gone.
    fn lock_as_program(&self) -> io::Result<Option<OwnedFd>> {
        let file = match open_file(&self.directory, "cgroup.events") {
            Err(error) if is_gone(&error) => return Ok(None),
            opened => opened?,
        };
        Ok(match lock(&file)? {
            Locking::Done => Some(file),
            Locking::Others => None,
        })
    }
}

fn lock(file: &OwnedFd) -> io::Result<Locking> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Locking::Done),
        Err(Errno::WOULDBLOCK) => Ok(Locking::Others),
        Err(errno) => Err(errno.into()),
    }
}

/// Makes a directory under a name that nobody has, and says which.
///
/// Never under one that this program has had before. A supervisor of it removes its home by name, having seen it by its
/// descriptor, and may do so late: after this program has removed that home, too, and made this one.
fn make_in(base: &OwnedFd) -> io::Result<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        match mkdirat(base, &name, Mode::from_raw_mode(0o755)) {
            Ok(()) => return Ok(name),
            // A lost program had the number of this one and left it behind.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

impl AsFd for Home {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// The base may hold cgroups of others, whose names are theirs to choose.
fn is_home(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(pid, number)| is_number(pid) && is_number(number))
}

fn sweep(base: &OwnedFd) {
    for name in directories(base).unwrap_or_default() {
        if !is_home(&name) {
            continue;
        }
        let home = Home::open(base, name.clone());
        if let Err(error) = home.and_then(|home| home.map_or(Ok(()), end)) {
            tracing::warn!(name, %error, "cannot remove cgroups that were left over");
        }
    }
}

/// Removes a home that nobody needs any more, at once or when its supervisor has had the time to do so.
fn end(mut home: Home) -> io::Result<()> {
    if matches!(lock(&home.directory)?, Locking::Done) {
        return home.remove();
    }
    if has_maker(&home.name) {
        return Ok(());
    }
    home.program = home.lock_as_program()?;
    if home.program.is_some() {
        let since = Instant::now();
        keeper::get()?.watch(Box::new(Left { home, since }));
    }
    Ok(())
}

/// Whether a process has the number of the one that made a home of this name. It may be another one; but if it is that
/// one, and of another version of this program, it has taken no second lock.
fn has_maker(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    let maker = number.and_then(|number| Pid::from_raw(number.parse().ok()?));
    maker.is_none_or(|maker| test_kill_process(maker) != Err(Errno::SRCH))
}
