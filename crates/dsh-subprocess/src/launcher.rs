//! The ways to start a process.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tokio::net::unix::pipe;
use tokio::sync::oneshot;

#[cfg(target_os = "linux")]
use crate::cgroup::{Base, Home};
use crate::error::{GuardError, SpawnError};
use crate::group::launch;
#[cfg(target_os = "linux")]
use crate::guarded::Guards;
use crate::limits::{LimitError, Limits};
use crate::spec::ProcessSpec;
use crate::starter;
use crate::stdin::StdinPipe;
use crate::tree::ProcessTree;

/// Starts processes, at one level of certainty about what becomes of them. Cheap to clone; clones are one launcher.
///
/// | level | an end proves | also ended |
/// |---|---|---|
/// | [`groups`](Launcher::groups) | the process group was seen empty | |
/// | [`guarded`](Launcher::guarded) | nobody is left, wherever members went | everything, when this program is killed, when a guard is killed or stopped |
/// | guarded, with [cgroups](Cgroups) | the same | and when guard and supervisor are killed at once |
///
/// Not in any tree is work that was handed to another daemon (`systemd-run`, `docker`, `at`).
#[derive(Debug, Clone)]
pub struct Launcher {
    level: Level,
}

/// Which program guards commands.
#[derive(Debug, Clone)]
pub struct GuardConfig {
    helper: Option<PathBuf>,
    cgroups: Cgroups,
}

/// Whether each command is also put into a cgroup of its own.
///
/// With one, a tree can be ended and its end be proven even when a command has killed its guard and the supervisor at
/// once ([`Proof::Cgroup`](crate::Proof)), a command that forks without end is ended by one write, and there can be
/// [`Limits`]. Needs Linux 5.14 and a cgroup of version 2 in which this program may make directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cgroups {
    /// In this program's own cgroup, if that can be done; otherwise without, which changes nothing else.
    #[default]
    Auto,
    /// Without.
    Off,
    /// In this directory, which was delegated to this program.
    Within(PathBuf),
}

/// A started process: its tree and this program's ends of its pipes. Each can be moved out and used on its own, by
/// whatever task, for as long as it likes.
///
/// An output pipe reaches its end when every process that holds its other end has closed it, which may be later
/// than the end of the tree (a process outside of it holds it) or earlier.
#[derive(Debug)]
pub struct Spawned {
    /// The tree. Dropping it ends it.
    pub tree: ProcessTree,
    /// What the process reads on descriptor 0, for whoever writes it; there with [`Stdin::Pipe`](crate::Stdin::Pipe) only.
    pub stdin: Option<StdinPipe>,
    /// What the process writes to descriptor 1.
    pub stdout: pipe::Receiver,
    /// What the process writes to descriptor 2.
    pub stderr: pipe::Receiver,
}

/// A started process, before a runtime watches its pipes.
pub(crate) struct Launched {
    pub(crate) tree: ProcessTree,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

#[derive(Debug, Clone)]
enum Level {
    Groups,
    #[cfg(target_os = "linux")]
    Guarded(std::sync::Arc<Guards>),
}

impl GuardConfig {
    /// This program, started again. It must call [`guard_entry`](crate::guard_entry) first in `main`.
    pub fn own_program() -> GuardConfig {
        GuardConfig {
            helper: None,
            cgroups: Cgroups::Auto,
        }
    }

    /// The helper `dsh-guard` of this crate's own version, for programs that cannot start themselves again (a test
    /// program, a plug-in of another one).
    pub fn helper(path: impl Into<PathBuf>) -> GuardConfig {
        GuardConfig {
            helper: Some(path.into()),
            cgroups: Cgroups::Auto,
        }
    }

    /// Where the cgroups of commands are; [`Cgroups::Auto`] if this is not called.
    #[must_use]
    pub fn cgroups(self, cgroups: Cgroups) -> GuardConfig {
        GuardConfig { cgroups, ..self }
    }

    fn program(self) -> Result<CString, GuardError> {
        use std::os::unix::ffi::OsStringExt;
        let Some(helper) = self.helper else {
            let offered = crate::guard::is_offered();
            return offered
                .then(|| c"/proc/self/exe".to_owned())
                .ok_or(GuardError::NotOffered);
        };
        // As it is now, wherever this program goes.
        let path = std::path::absolute(&helper).and_then(|path| std::fs::metadata(&path).map(|_| path));
        let path = path.and_then(|path| CString::new(path.into_os_string().into_vec()).map_err(Into::into));
        path.map_err(|source| GuardError::Helper { helper, source })
    }
}

impl Launcher {
    /// Each process in a group of its own. Needs nothing, and proves nothing of a member that leaves the group.
    pub fn groups() -> Launcher {
        Launcher { level: Level::Groups }
    }

    /// Each process under a guard of its own, and the guards under a supervisor, which is started with the first one.
    ///
    /// Umask, resource limits and what else a process inherits are those that this program had at that time. A
    /// supervisor that is lost is replaced by the next spawn; the guards that it leaves behind go on without it.
    ///
    /// # Errors
    ///
    /// [`GuardError`] when no program can be the guard. Nothing is started yet.
    pub fn guarded(config: GuardConfig) -> Result<Launcher, GuardError> {
        #[cfg(target_os = "linux")]
        let base = base(&config.cgroups)?;
        let program = config.program()?;
        #[cfg(target_os = "linux")]
        return Ok(Launcher {
            level: Level::Guarded(std::sync::Arc::new(Guards::new(program, base))),
        });
        #[cfg(not(target_os = "linux"))]
        {
            drop(program);
            Err(GuardError::Unsupported)
        }
    }

    /// Whether processes are started under guards.
    pub fn is_guarded(&self) -> bool {
        match self.level {
            Level::Groups => false,
            #[cfg(target_os = "linux")]
            Level::Guarded(_) => true,
        }
    }

    /// Whether processes can be held to these limits. If so, the cgroups are made ready for that.
    ///
    /// # Errors
    ///
    /// [`LimitError`] says what is missing.
    pub fn check_limits(&self, limits: &Limits) -> Result<(), LimitError> {
        match &self.level {
            Level::Groups if limits.is_none() => Ok(()),
            Level::Groups => Err(LimitError::no_guard()),
            #[cfg(target_os = "linux")]
            Level::Guarded(guards) => guards.check_limits(limits),
        }
    }

    /// Starts a process with default signal dispositions, an empty signal mask, and descriptors 0 to 2 only.
    ///
    /// The system calls can take milliseconds on a busy machine; they are made on a thread of this crate.
    ///
    /// # Errors
    ///
    /// Says whether the program, the directory or the system's limits are at fault. No process is left.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future starts nothing, or kills and reaps what was started. A start that hangs in the kernel (the
    /// program lies on a file system that does not answer) is ended under a guard; in a group it goes on until the kernel
    /// gives it up, and is ended then.
    pub async fn spawn(&self, spec: ProcessSpec) -> Result<Spawned, SpawnError> {
        let level = self.level.clone();
        // The caller may drop this future at any point. Before the launch the closed channel prevents it; after
        // it the launched tree is dropped with the refused or unread answer, which ends it.
        let (answer, launched) = oneshot::channel();
        let begun = starter::soon(move || {
            if answer.is_closed() {
                return;
            }
            let launched = match level {
                Level::Groups => launch(spec),
                #[cfg(target_os = "linux")]
                Level::Guarded(guards) => guards.launch(spec, &|| answer.is_closed()),
            };
            let _ = answer.send(launched);
        });
        begun.map_err(|error| SpawnError::resources("a thread that starts processes", error))?;
        let panicked = |_| SpawnError::resources("a process", io::Error::other("the start panicked"));
        let Launched {
            tree,
            stdin,
            stdout,
            stderr,
        } = launched.await.map_err(panicked)??;
        let refused = |error| SpawnError::resources("a watched pipe", error);
        let receive = |fd| pipe::Receiver::from_owned_fd(fd).map_err(refused);
        Ok(Spawned {
            stdin: stdin.map(StdinPipe::new).transpose().map_err(refused)?,
            stdout: receive(stdout)?,
            stderr: receive(stderr)?,
            tree,
        })
    }
}

#[cfg(target_os = "linux")]
fn base(cgroups: &Cgroups) -> Result<Option<Base>, GuardError> {
    match cgroups {
        Cgroups::Auto => Ok(Base::own()),
        Cgroups::Off => Ok(None),
        Cgroups::Within(directory) => {
            let base = Base::given(directory.clone());
            let usable = base.and_then(|base| Home::create(&base)?.remove().map(|()| base));
            usable.map(Some).map_err(|source| GuardError::Cgroup {
                directory: directory.clone(),
                source,
            })
        }
    }
}
