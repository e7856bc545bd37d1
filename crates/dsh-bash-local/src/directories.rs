//! Whether commands can run in a directory, asked without ever waiting for a file system.
//!
//! A file system that does not answer keeps whoever asks it in the kernel, often beyond SIGKILL. A thread of this program
//! that asks would keep the whole program there: its end, and its descriptors, by which others see that it has ended. So
//! the kernel is asked for what it knows by itself, which is nearly always enough; for the rest a process asks that shares
//! nothing with this one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dsh_bash::StartError;
use dsh_scope::within;
use dsh_subprocess::{Launcher, LeaderExit, ProcessSpec, ProcessTree, Spawned};
use tokio::io::AsyncReadExt;

/// What the process does that asks; the directory is its `$0`.
const QUESTION: &str = "cd -- \"$0\"";

/// So many processes that nobody waits for any more may hang.
const MOST_HUNG: usize = 16;

/// How long the words of a process that has exited may take.
const WORDS: Duration = Duration::from_secs(1);

/// Asks for directories.
pub(crate) struct Directories {
    launcher: Launcher,
    env: Vec<(OsString, OsString)>,
    question: &'static str,
    hung: Hung<ProcessTree>,
}

/// What the kernel knows of a directory without asking a file system.
enum Known {
    Usable,
    Unusable(io::Error),
    Nothing,
}

impl Directories {
    /// `path` is where the shell is found.
    pub(crate) fn new(launcher: Launcher, path: Option<&OsStr>) -> Self {
        Self::asking(QUESTION, launcher, path)
    }

    fn asking(question: &'static str, launcher: Launcher, path: Option<&OsStr>) -> Self {
        let path = path.map(|path| ("PATH".into(), path.into()));
        let words = ("LC_ALL".into(), "C".into());
        Self {
            launcher,
            env: path.into_iter().chain([words]).collect(),
            question,
            hung: Hung::default(),
        }
    }

    /// Whether commands can run in `directory`. What cannot be found out here, the start of the command will show.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the process that asks. If it hangs, it is one of [`MOST_HUNG`].
    pub(crate) async fn check(&self, directory: &Path) -> Result<(), StartError> {
        let error = match known(directory) {
            Known::Usable => return Ok(()),
            Known::Unusable(error) => describe(&error),
            Known::Nothing if self.hung.count(|tree| tree.leader_exited().is_some()) >= MOST_HUNG => {
                format!("it was not looked at, because {MOST_HUNG} others do not answer")
            }
            Known::Nothing => match self.ask(directory).await {
                None => return Ok(()),
                Some(error) => error,
            },
        };
        let path = directory.to_owned();
        Err(StartError::Workdir { path, error })
    }

    /// Lets a process enter `directory`; what it says if it cannot.
    async fn ask(&self, directory: &Path) -> Option<String> {
        let spec = ProcessSpec {
            args: vec!["-c".into(), self.question.into(), directory.into()],
            env: self.env.clone(),
            ..ProcessSpec::new("bash", "/")
        };
        let Spawned { tree, mut stderr, .. } = match self.launcher.spawn(spec).await {
            Ok(spawned) => spawned,
            Err(error) => {
                tracing::debug!(%error, "nobody asks for a directory");
                return None;
            }
        };
        let asking = Asking {
            tree: Some(tree),
            hung: &self.hung,
        };
        let exit = asking.exit().await;
        if exit != Some(LeaderExit::Code(1)) {
            return None;
        }
        let mut said = Vec::new();
        let read = within(WORDS, stderr.read_to_end(&mut said)).await;
        matches!(read, Some(Ok(_))).then(|| reason(&String::from_utf8_lossy(&said)))
    }
}

/// A process that asks. Dropped before it is over, it is told to go, and counts as hung until it has gone.
struct Asking<'a> {
    tree: Option<ProcessTree>,
    hung: &'a Hung<ProcessTree>,
}

impl Asking<'_> {
    async fn exit(mut self) -> Option<LeaderExit> {
        let exit = self.tree.as_ref()?.leader_exit().await;
        self.tree = None;
        Some(exit)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(tree) = self.tree.take() {
            tree.terminate(Duration::ZERO);
            self.hung.keep(tree);
        }
    }
}

/// What nobody waits for and may still be there.
struct Hung<T>(Mutex<Vec<T>>);

impl<T> Default for Hung<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Hung<T> {
    fn keep(&self, hung: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hung);
    }

    /// How many are still there.
    fn count(&self, is_over: impl Fn(&T) -> bool) -> usize {
        let mut hung = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over: Vec<T> = hung.extract_if(.., |hung| is_over(hung)).collect();
        let count = hung.len();
        drop(hung);
        drop(over);
        count
    }
}

/// Takes less than a microsecond. To look up `.` below a path one needs a directory there, and the right to enter it.
#[cfg(target_os = "linux")]
fn known(directory: &Path) -> Known {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let inside = directory.join(".");
    match openat2(CWD, inside, flags, Mode::empty(), ResolveFlags::CACHED) {
        Ok(_) => Known::Usable,
        Err(errno @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP | Errno::NAMETOOLONG)) => {
            Known::Unusable(errno.into())
        }
        // It would have to ask, or it does not take such questions.
        Err(_) => Known::Nothing,
    }
}

#[cfg(not(target_os = "linux"))]
fn known(_: &Path) -> Known {
    Known::Nothing
}

/// `ENOENT: no such directory`: the name that programs look for, and words.
fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "ENOENT: no such directory".to_owned(),
        io::ErrorKind::NotADirectory => "ENOTDIR: not a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "EACCES: permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// The same, from what a shell says: `bash: line 1: cd: /srv: Not a directory`.
fn reason(said: &str) -> String {
    let words = said.trim_end().rsplit(": ").next().unwrap_or_default();
    let kind = match words {
        "No such file or directory" => io::ErrorKind::NotFound,
        "Not a directory" => io::ErrorKind::NotADirectory,
        "Permission denied" => io::ErrorKind::PermissionDenied,
        words => return words.to_owned(),
    };
    describe(&kind.into())
}

#[cfg(test)]
mod tests;
