//! What a process gets, made ready before anything is started.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Mode, OFlags};

use crate::error::{SpawnError, is_shortage};
use crate::feed::Feed;
use crate::lookup;
use crate::spec::{ProcessSpec, Stdin};

/// A spec that was checked, and the descriptors that it asks for. All their numbers are 3 or higher.
pub(crate) struct Prepared {
    pub(crate) program: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) directory: OwnedFd,
    /// What the process gets as 0, 1 and 2.
    pub(crate) stdio: [OwnedFd; 3],
    /// What this program keeps: what it feeds its standard input with, or the writing end of that; the reading ends of the
    /// others.
    pub(crate) feed: Option<Feed>,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// Program and directory as they were asked for.
    asked: OsString,
    cwd: PathBuf,
}

impl Prepared {
    pub(crate) fn new(spec: ProcessSpec) -> Result<Prepared, SpawnError> {
        let argv = argv(&spec.program, &spec.args)?;
        let env = environment(&spec.env)?;
        let directory = open_directory(&spec.cwd)?;
        let program =
            lookup::find(&spec.program, &spec.env, &spec.cwd).map_err(|source| SpawnError::Program {
                program: spec.program.clone(),
                source,
            })?;
        let Input { read, feed, write } = Input::open(spec.stdin)?;
        let (stdout, child_stdout) = open_pipe()?;
        let (stderr, child_stderr) = open_pipe()?;
        Ok(Prepared {
            program: c_string(program.into_os_string(), || "program name".to_owned())?,
            argv,
            env,
            directory,
            stdio: [read, child_stdout, child_stderr],
            feed,
            stdin: write,
            stdout,
            stderr,
            asked: spec.program,
            cwd: spec.cwd,
        })
    }

    /// What is at fault when the system does not start this. It has one error number for all the steps of a start.
    pub(crate) fn blame(&self, source: io::Error) -> SpawnError {
        // The directory was opened, but entering it needs one more permission.
        let enter = rustix::fs::accessat(&self.directory, ".", Access::EXEC_OK, AtFlags::empty());
        if let (Some(libc::EACCES), Err(refusal)) = (source.raw_os_error(), enter) {
            return SpawnError::directory(&self.cwd, refusal);
        }
        if is_shortage(&source) {
            return SpawnError::resources("a process", source);
        }
        if source.raw_os_error() == Some(libc::E2BIG) {
            return SpawnError::TooLong { source };
        }
        SpawnError::Program {
            program: self.asked.clone(),
            source,
        }
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

pub(crate) fn c_string(text: OsString, what: impl FnOnce() -> String) -> Result<CString, SpawnError> {
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

/// What a process reads as 0, and what this program has of that.
struct Input {
    read: OwnedFd,
    feed: Option<Feed>,
    write: Option<OwnedFd>,
}

impl Input {
    fn open(stdin: Stdin) -> Result<Input, SpawnError> {
        if matches!(stdin, Stdin::Null) {
            let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| SpawnError::resources("the null device", errno))?;
            return Ok(Input {
                read: above_stdio(null)?,
                feed: None,
                write: None,
            });
        }
        let (read, write) = open_pipe()?;
        rustix::io::ioctl_fionbio(&write, true).map_err(|errno| SpawnError::resources("a pipe", errno))?;
        let (feed, write) = match stdin {
            Stdin::Data(data) => (Some(Feed::new(write, data)), None),
            Stdin::Null | Stdin::Pipe => (None, Some(write)),
        };
        Ok(Input { read, feed, write })
    }
}

/// The reading and the writing end of a close-on-exec pipe.
fn open_pipe() -> Result<(OwnedFd, OwnedFd), SpawnError> {
    let (read, write) = io::pipe().map_err(|error| SpawnError::resources("a pipe", error))?;
    Ok((above_stdio(read.into())?, above_stdio(write.into())?))
}

/// Descriptors 0 to 2 may be closed in this program and then be handed out as new ones; the copies that
/// are made in the child need them free.
pub(crate) fn above_stdio(fd: OwnedFd) -> Result<OwnedFd, SpawnError> {
    use std::os::fd::AsRawFd;
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    rustix::io::fcntl_dupfd_cloexec(&fd, 3).map_err(|errno| SpawnError::resources("a descriptor", errno))
}
