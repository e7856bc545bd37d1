//! The process of a product, and the end of all it started.

use std::convert::Infallible;
use std::ffi::OsString;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{
    Launcher, LeaderExit, ProcessSpec, ProcessTree, Proof, SpawnError, Stdin, StdinPipe, TreeEnd,
};
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

/// What to start.
#[derive(Debug, Clone)]
pub struct ProductSpec {
    /// The program, by its path: a product is what its deployment says, not what happens to be on the `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it works. An absolute path of a directory.
    pub cwd: PathBuf,
    /// Its whole environment; see [`overlay`](crate::overlay).
    pub env: Vec<(OsString, OsString)>,
    /// How long it has to end by itself when it is told to.
    pub grace: Duration,
    /// Takes that time from it, once it is cancelled.
    pub hurry: CancellationToken,
}

/// A product that runs. Clones are one product; when the last is dropped, what is left of it is killed.
#[derive(Debug, Clone)]
pub struct Product {
    tree: Arc<ProcessTree>,
    grace: Duration,
    hurry: CancellationToken,
}

/// What it is spoken to over.
#[derive(Debug)]
pub struct Streams {
    /// What it reads.
    pub stdin: StdinPipe,
    /// What it writes.
    pub stdout: pipe::Receiver,
    /// What it writes for people. Somebody has to read it: see [`log_lines`](crate::log_lines).
    pub stderr: pipe::Receiver,
}

/// Something of a product is left, or may be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// These did not end.
    #[error("still running after a kill: {0}")]
    Survivors(String),
    /// Nobody saw that nothing is left.
    #[error("it was not seen that nothing of it is left")]
    NotProven,
}

impl Product {
    /// Starts it. Everything it starts belongs to it, as far as the launcher's level goes.
    ///
    /// # Errors
    ///
    /// A [`SpawnError`]; nothing was started then.
    ///
    /// # Panics
    ///
    /// As [`Launcher::spawn`].
    ///
    /// # Cancel safety
    ///
    /// Dropped, what was started is killed.
    pub async fn start(launcher: &Launcher, spec: ProductSpec) -> Result<(Self, Streams), SpawnError> {
        let ProductSpec {
            program,
            args,
            cwd,
            env,
            grace,
            hurry,
        } = spec;
        let started = launcher
            .spawn(ProcessSpec {
                args,
                env,
                stdin: Stdin::Pipe,
                ..ProcessSpec::new(program, cwd)
            })
            .await?;
        let product = Self {
            tree: Arc::new(started.tree),
            grace,
            hurry,
        };
        let streams = Streams {
            stdin: started.stdin.ok_or_else(|| SpawnError::Resources {
                what: "a pipe for standard input",
                source: std::io::ErrorKind::Unsupported.into(),
            })?,
            stdout: started.stdout,
            stderr: started.stderr,
        };
        Ok((product, streams))
    }

    /// How it ended. What it started may run on.
    ///
    /// # Cancel safety
    ///
    /// Only waits.
    pub async fn exit(&self) -> LeaderExit {
        self.tree.leader_exit().await
    }

    /// How it ended, if it has.
    pub fn exited(&self) -> Option<LeaderExit> {
        self.tree.leader_exited()
    }

    /// Resolves when nothing has time any more to end by itself.
    ///
    /// # Cancel safety
    ///
    /// Only waits.
    pub async fn hurried(&self) {
        self.hurry.cancelled().await;
    }

    /// Ends it and all that it started, if something of that is left, and returns when nothing is: TERM, the grace, KILL. Every
    /// call awaits the one end. In a hurry, one that is awaited has no grace.
    ///
    /// # Errors
    ///
    /// A [`ReleaseError`] when something is left, or nobody could see that nothing is.
    ///
    /// # Cancel safety
    ///
    /// The end goes on: dropping this only stops waiting.
    pub async fn release(&self) -> Result<(), ReleaseError> {
        self.tree.terminate(self.grace);
        let hurried = async {
            self.hurried().await;
            self.tree.terminate(Duration::ZERO);
            pending::<Infallible>().await
        };
        let TreeEnd { survivors, proof, .. } = tokio::select! {
            biased;
            end = self.tree.ended() => end,
            never = hurried => match never {},
        };
        if !survivors.is_empty() {
            let named: Vec<String> = survivors
                .iter()
                .map(|member| format!("{} {}", member.pid, member.command))
                .collect();
            return Err(ReleaseError::Survivors(named.join(", ")));
        }
        match proof {
            Proof::NotProven => Err(ReleaseError::NotProven),
            Proof::Group | Proof::Cgroup | Proof::Guard | Proof::Supervisor => Ok(()),
        }
    }

    /// [Releases](Self::release) it, and reads meanwhile what it still writes: one whose pipes are full or closed cannot end as
    /// it likes.
    ///
    /// # Errors
    ///
    /// As [`release`](Self::release).
    ///
    /// # Cancel safety
    ///
    /// As [`release`](Self::release); the reading ends.
    pub async fn release_while(&self, reading: impl Future) -> Result<(), ReleaseError> {
        let read = async {
            reading.await;
            pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            released = self.release() => released,
            never = read => match never {},
        }
    }
}
