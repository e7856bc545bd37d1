use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, Mode, OFlags};
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use crate::error::{SpawnError, is_shortage};
use crate::feed::Feed;
use crate::group::Group;
use crate::keeper;
use crate::lookup;
use crate::spec::{ProcessSpec, Stdin};
use crate::sys;
use crate::tree::{ProcessTree, Shared, Status};

/// A started process: its tree and the reading ends of its two output pipes.
///
/// A pipe reaches its end when every process that holds its other end has closed it, which may be later
/// than the end of the tree (a process that left the group holds it) or earlier.
#[derive(Debug)]
pub struct Spawned {
    /// The tree. Dropping it kills it.
    pub tree: ProcessTree,
    /// What the process writes to descriptor 1.
    pub stdout: pipe::Receiver,
    /// What the process writes to descriptor 2.
    pub stderr: pipe::Receiver,
}

/// Starts a process in a group of its own, with default signal dispositions, an empty signal mask, and
/// descriptors 0 to 2 only.
///
/// The system call can take milliseconds on a busy machine; it is made on a blocking thread.
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
/// Dropping the future starts nothing, or kills and reaps what was started.
pub async fn spawn(spec: ProcessSpec) -> Result<Spawned, SpawnError> {
    // The caller may drop this future at any point. Before the launch the closed channel prevents it; after
    // it the launched tree is dropped with the refused or unread answer, which ends it.
    let (answer, launched) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        if !answer.is_closed() {
            let _ = answer.send(launch(spec));
        }
    });
    let Launched { tree, stdout, stderr } = launched.await.map_err(|_| SpawnError::Shutdown)??;
    let receive = |fd| {
        pipe::Receiver::from_owned_fd(fd).map_err(|error| SpawnError::resources("a watched pipe", error))
    };
    Ok(Spawned {
        stdout: receive(stdout)?,
        stderr: receive(stderr)?,
        tree,
    })
}

struct Launched {
    tree: ProcessTree,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

fn launch(spec: ProcessSpec) -> Result<Launched, SpawnError> {
    let argv = argv(&spec.program, &spec.args)?;
    let env = environment(&spec.env)?;
    if !sys::exit_statuses_are_kept() {
        return Err(SpawnError::ExitsIgnored);
    }
    let keeper = keeper::get().map_err(|error| SpawnError::resources("the watching thread", error))?;
    let directory = open_directory(&spec.cwd)?;
    let program =
        lookup::find(&spec.program, &spec.env, &spec.cwd).map_err(|source| SpawnError::Program {
            program: spec.program.clone(),
            source,
        })?;
    let path = c_string(program.into_os_string(), || "program name".to_owned())?;
    let (stdin, feed) = open_stdin(spec.stdin)?;
    let (stdout, child_stdout) = open_pipe()?;
    let (stderr, child_stderr) = open_pipe()?;
    let leader = sys::spawn(&sys::Launch {
        program: &path,
        argv: &argv,
        env: &env,
        directory: directory.as_fd(),
        stdio: [stdin.as_fd(), child_stdout.as_fd(), child_stderr.as_fd()],
    })
    .map_err(|source| blame(source, &spec.program, &spec.cwd, directory.as_fd()))?;
    let (status, _) = watch::channel(Status::default());
    let shared = Arc::new(Shared {
        group: Group::new(leader),
        status,
        kill_bound: spec.kill_bound,
    });
    keeper.watch(Arc::clone(&shared), feed);
    Ok(Launched {
        tree: ProcessTree::new(shared),
        stdout,
        stderr,
    })
}

/// `posix_spawn` has one error number for all its steps; says which of them it means.
fn blame(source: io::Error, program: &OsStr, cwd: &Path, directory: BorrowedFd<'_>) -> SpawnError {
    if is_shortage(&source) {
        return SpawnError::resources("a process", source);
    }
    if source.raw_os_error() == Some(libc::E2BIG) {
        return SpawnError::TooLong { source };
    }
    // The directory was opened, but entering it needs one more permission.
    let enter = rustix::fs::accessat(directory, ".", Access::EXEC_OK, AtFlags::empty());
    if let (Some(libc::EACCES), Err(refusal)) = (source.raw_os_error(), enter) {
        return SpawnError::directory(cwd, refusal);
    }
    SpawnError::Program {
        program: program.to_owned(),
        source,
    }
}

fn argv(program: &OsString, args: &[OsString]) -> Result<Vec<CString>, SpawnError> {
    if program.is_empty() {
        return Err(SpawnError::EmptyProgram);
    }
    let name = c_string(program.clone(), || "program name".to_owned())?;
    let rest = args
        .iter()
        .enumerate()
        .map(|(index, arg)| c_string(arg.clone(), || format!("argument {}", index + 1)));
    std::iter::once(Ok(name)).chain(rest).collect()
}

fn environment(entries: &[(OsString, OsString)]) -> Result<Vec<CString>, SpawnError> {
    let mut names = std::collections::HashMap::new();
    for (index, (name, _)) in entries.iter().enumerate() {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(SpawnError::EnvName { name: name.clone() });
        }
        names.insert(name, index);
    }
    let last = entries
        .iter()
        .enumerate()
        .filter(|(index, (name, _))| names.get(name) == Some(index));
    last.map(|(_, (name, value))| {
        let mut entry = name.clone();
        entry.push("=");
        entry.push(value);
        c_string(entry, || format!("environment variable {}", name.display()))
    })
    .collect()
}

fn c_string(text: OsString, what: impl FnOnce() -> String) -> Result<CString, SpawnError> {
    CString::new(text.into_vec()).map_err(|_| SpawnError::Nul {
        what: what().replace('\0', "\\0"),
    })
}

/// The directory as a descriptor, so that what is entered is what was found.
fn open_directory(cwd: &Path) -> Result<OwnedFd, SpawnError> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = flags | OFlags::PATH;
    let directory =
        rustix::fs::open(cwd, flags, Mode::empty()).map_err(|errno| SpawnError::directory(cwd, errno))?;
    above_stdio(directory)
}

fn open_stdin(stdin: Stdin) -> Result<(OwnedFd, Option<Feed>), SpawnError> {
    match stdin {
        Stdin::Null => {
            let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| SpawnError::resources("the null device", errno))?;
            Ok((above_stdio(null)?, None))
        }
        Stdin::Data(data) => {
            let (read, write) = open_pipe()?;
            rustix::io::ioctl_fionbio(&write, true)
                .map_err(|errno| SpawnError::resources("a pipe", errno))?;
            Ok((read, Some(Feed::new(write, data))))
        }
    }
}

/// The reading and the writing end of a close-on-exec pipe.
fn open_pipe() -> Result<(OwnedFd, OwnedFd), SpawnError> {
    let (read, write) = io::pipe().map_err(|error| SpawnError::resources("a pipe", error))?;
    Ok((above_stdio(read.into())?, above_stdio(write.into())?))
}

/// Descriptors 0 to 2 may be closed in this program and then be handed out as new ones; the copies that
/// are made in the child need them free.
fn above_stdio(fd: OwnedFd) -> Result<OwnedFd, SpawnError> {
    use std::os::fd::AsRawFd;
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    rustix::io::fcntl_dupfd_cloexec(&fd, 3).map_err(|errno| SpawnError::resources("a descriptor", errno))
}
