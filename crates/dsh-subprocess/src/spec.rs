//! What to start.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::Limits;

/// What to start. Nothing is inherited but what stands here.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// The program: a path, or a bare name that is looked up on the `PATH` of [`env`](Self::env).
    ///
    /// A path that is not absolute means one below [`cwd`](Self::cwd).
    pub program: OsString,
    /// The arguments, without the program's own name. Passed verbatim; no shell sees them.
    pub args: Vec<OsString>,
    /// A command for [`program`](Self::program), which must be a bash then: it follows the arguments, as after `-c`.
    ///
    /// Under a guard it is as long as it likes and stands in nobody's arguments: the shell reads it from a file of the
    /// guard and evaluates it. That leaves `$0`, `$#`, the exit status and the descriptors as they are, and differs
    /// in two ways: a syntax error is told without `-c: line N`, and a single program is a child of the shell
    /// instead of taking its place, so a signal that ends it is told as the shell tells it (`139`, not SIGSEGV).
    pub bash_command: Option<OsString>,
    /// The complete environment. A later entry of the same name wins.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory. It must exist.
    pub cwd: PathBuf,
    /// What the process reads on descriptor 0.
    pub stdin: Stdin,
    /// How long after the first SIGKILL survivors are waited for before they are named. Default 10 s.
    pub kill_bound: Duration,
    /// What the tree may use at most. A start that cannot be held to it is refused.
    pub limits: Limits,
}

/// What a process reads on descriptor 0.
#[derive(Debug, Clone, Default)]
pub enum Stdin {
    /// The null device.
    #[default]
    Null,
    /// A pipe with these bytes, then end of file. A process that does not read them loses nothing else.
    Data(Vec<u8>),
    /// A pipe that the owner writes to while the process runs: [`Spawned::stdin`](crate::Spawned::stdin).
    Pipe,
}

impl ProcessSpec {
    /// A program without arguments, with an empty environment, that reads the null device.
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> ProcessSpec {
        ProcessSpec {
            program: program.into(),
            args: Vec::new(),
            bash_command: None,
            env: Vec::new(),
            cwd: cwd.into(),
            stdin: Stdin::Null,
            kill_bound: Duration::from_secs(10),
            limits: Limits::default(),
        }
    }
}
