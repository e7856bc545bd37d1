//! The foreground: a process and a caller that waits for its shell.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dsh_output::{OutputLog, StreamText};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    BashExecutor, BashProcess, BashSpec, End, EndReason, Member, Pipe, ProcessState, RunError, ShellEnd,
    ShellExit, StartError,
};

/// What a foreground command came to.
pub struct RunResult {
    /// How the shell ended; never [`ShellExit::Failed`].
    pub exit: ShellExit,
    /// Who cut it short, if anybody: the timeout and the caller exclude each other, the first one counts.
    pub cut: Option<Cut>,
    /// The timeout that applied.
    pub timeout: Duration,
    /// Standard output, rendered, within its budget.
    pub stdout: StreamText,
    /// Standard error, rendered, within its budget.
    pub stderr: StreamText,
    /// Up to which offset of the log the two texts speak. Whoever takes the process over reads on from here.
    pub told: u64,
    /// Who of the tree lives on. Always empty after a cut, and after an exit that was not seen.
    pub left: Vec<Member>,
    /// Who could not be ended by a cut, or was seen alive when the exit was not seen.
    pub survivors: Vec<Member>,
    /// The limits that the tree ran into, in words. Empty while something of it is left: its end tells them.
    pub limits_reached: Vec<String>,
    /// Whether the output is complete.
    pub pipe: Pipe,
    /// The process itself, to be handed on when something is left of it.
    pub process: Arc<dyn BashProcess>,
}

/// Who cut a command short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Its timeout fired while the shell ran.
    TimedOut,
    /// The caller's token was cancelled.
    Aborted,
}

impl RunResult {
    /// Takes both texts again, up to now: for whoever has ended what was left, which may have said something until then.
    pub fn retell(&mut self, spec: &BashSpec) {
        (self.stdout, self.stderr, self.told) = texts(self.process.output(), spec);
    }
}

impl fmt::Debug for RunResult {
    /// Everything but the output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunResult")
            .field("exit", &self.exit)
            .field("cut", &self.cut)
            .field("left", &self.left)
            .field("survivors", &self.survivors)
            .field("limits_reached", &self.limits_reached)
            .field("pipe", &self.pipe)
            .finish_non_exhaustive()
    }
}

/// Asks `executor` whether `spec` can be started, for as long as a caller in the foreground would wait for the command.
///
/// # Errors
///
/// [`RunError`] when it cannot, when nobody answered in that time, or when `token` was cancelled before that.
///
/// # Cancel safety
///
/// Dropping the future changes nothing.
pub async fn checked(
    executor: &dyn BashExecutor,
    spec: &BashSpec,
    token: &CancellationToken,
) -> Result<(), RunError> {
    if token.is_cancelled() {
        return Err(RunError::AbortedBeforeSpawn);
    }
    tokio::select! {
        biased;
        checked = executor.check(spec) => Ok(checked?),
        () = token.cancelled() => Err(RunError::AbortedInCheck { path: spec.workdir.clone() }),
        () = sleep(spec.timeout) => {
            let (path, after) = (spec.workdir.clone(), spec.timeout);
            Err(StartError::Unanswered { path, after }.into())
        }
    }
}

/// Checks and starts `spec`, and waits until its shell has exited and its output was drained. The timeout counts from
/// the call.
///
/// When the timeout fires while the shell runs, or `token` is cancelled, the whole tree is ended and awaited first. A
/// timeout never hits a shell that has already exited: what remains then is a bounded drain. An exit that was not seen
/// ([`ShellExit::Unseen`]) is told with what the end of the tree showed.
///
/// A nonzero exit, a signal, a timeout and a cancellation are results, not errors.
///
/// # Errors
///
/// [`RunError`] when there is no exit to report: the command was refused, the token was cancelled beforehand, or no
/// shell could be started.
///
/// # Cancel safety
///
/// Dropping the future asks for the end of the process ([`EndReason::Cancelled`]); its executor sees to it.
pub async fn run(
    executor: &dyn BashExecutor,
    spec: &BashSpec,
    token: &CancellationToken,
) -> Result<RunResult, RunError> {
    let since = Instant::now();
    checked(executor, spec, token).await?;
    let process = executor.start(spec)?;
    let abandoned = EndOnDrop(Some(&*process));
    let left = spec.timeout.saturating_sub(since.elapsed());
    let (cut, finish) = finish(&*process, spec.timeout, left, token).await;
    abandoned.disarm();
    if let ShellExit::Failed { reason } = finish.exit {
        return Err(RunError::Failed { reason });
    }
    let (stdout, stderr, told) = texts(process.output(), spec);
    Ok(RunResult {
        exit: finish.exit,
        cut,
        timeout: spec.timeout,
        stdout,
        stderr,
        told,
        left: finish.left,
        survivors: finish.survivors,
        limits_reached: finish.limits_reached,
        pipe: finish.pipe,
        process,
    })
}

/// Waits for a process in the background, and ends it when `deadline` has passed.
///
/// # Cancel safety
///
/// Dropping the future leaves the process as it is, without a deadline.
pub async fn ended_within(process: &dyn BashProcess, deadline: Option<Duration>) -> End {
    let mut ended = process.ended();
    if let Some(after) = deadline {
        tokio::select! {
            biased;
            end = &mut ended => return end,
            () = sleep(after) => process.terminate(EndReason::TimedOut { after }),
        }
    }
    ended.await
}

struct Finish {
    exit: ShellExit,
    left: Vec<Member>,
    survivors: Vec<Member>,
    limits_reached: Vec<String>,
    pipe: Pipe,
}

async fn finish(
    process: &dyn BashProcess,
    timeout: Duration,
    left: Duration,
    token: &CancellationToken,
) -> (Option<Cut>, Finish) {
    let (cut, reason) = tokio::select! {
        biased;
        finish = shell_finish(process) => return (None, finish),
        () = token.cancelled() => (Cut::Aborted, EndReason::Cancelled),
        () = outrun(process, left) => (Cut::TimedOut, EndReason::TimedOut { after: timeout }),
    };
    process.terminate(reason);
    (Some(cut), process.ended().await.into())
}

/// Where the foreground returns by itself: at the end of the shell or, if nobody saw that, of the tree.
async fn shell_finish(process: &dyn BashProcess) -> Finish {
    let ShellEnd {
        exit,
        left,
        limits_reached,
        pipe,
    } = process.shell_ended().await;
    match exit {
        ShellExit::Unseen { .. } => process.ended().await.into(),
        ShellExit::Code(_) | ShellExit::Signal { .. } | ShellExit::Failed { .. } => Finish {
            exit,
            left,
            survivors: Vec::new(),
            limits_reached,
            pipe,
        },
    }
}

impl From<End> for Finish {
    fn from(end: End) -> Self {
        Self {
            exit: end.exit,
            left: Vec::new(),
            survivors: end.survivors,
            limits_reached: end.limits_reached,
            pipe: end.pipe,
        }
    }
}

/// Resolves when `left` has passed and the shell still runs; never, if it has exited by then.
async fn outrun(process: &dyn BashProcess, left: Duration) {
    sleep(left).await;
    match process.state() {
        ProcessState::Starting | ProcessState::Running => {}
        ProcessState::ShellExited { .. } | ProcessState::Ended(_) => std::future::pending().await,
    }
}

/// Both texts, and the offset they speak up to. What the shell left running may write meanwhile: that lies behind the
/// offset, for whoever reads on from there.
fn texts(log: &OutputLog, spec: &BashSpec) -> (StreamText, StreamText, u64) {
    let told = log.len();
    let (stdout, stderr) = log.stream_texts(told, spec.stdout_max_bytes, spec.stderr_max_bytes);
    (stdout, stderr, told)
}

/// Ends the process of a caller that went away in the middle of [`run`].
struct EndOnDrop<'a>(Option<&'a dyn BashProcess>);

impl EndOnDrop<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(process) = self.0 {
            process.terminate(EndReason::Cancelled);
        }
    }
}
