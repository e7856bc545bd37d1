//! One run: the handshake, the turn, and the end of the app server.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use dsh_agent::BoxError;
use dsh_llm::ContentBlock;
use dsh_subagent::{Diagnostic, RunFault, RunResult};
use dsh_subagent_process::{Product, ReleaseError};
use dsh_subprocess::LeaderExit;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::PREFIX;
use crate::config::PermissionMode;
use crate::failure::{Failure, Fault, Stage};
use crate::frame::Frame;
use crate::handshake::Handshake;
use crate::link::{Heard, Link, Rest};
use crate::turn::{End, Turn};

/// How long a failed turn waits for what belongs to it: what Codex wrote for people just before, and its exit.
const SETTLING: Duration = Duration::from_millis(20);

/// Why there is no thread.
pub(crate) enum Unstarted {
    Cancelled,
    Failed(Failure, BoxError),
}

/// What is asked of Codex.
pub(crate) struct Job {
    pub(crate) provider: String,
    pub(crate) mode: PermissionMode,
    pub(crate) task: Vec<String>,
}

/// Has a thread, and returns its id.
pub(crate) async fn greet(
    link: &mut Link,
    cwd: String,
    mode: PermissionMode,
    token: &CancellationToken,
) -> Result<String, Unstarted> {
    let (mut handshake, first) = Handshake::begin(cwd, mode);
    link.send(first);
    loop {
        let heard = tokio::select! {
            biased;
            () = token.cancelled() => return Err(Unstarted::Cancelled),
            heard = link.next() => heard,
        };
        let failed = |link: &mut Link, stage: Stage, cause: BoxError| {
            Unstarted::Failed(Failure::unknown(stage).with_exit(link.exited()), cause)
        };
        let line = match heard {
            Heard::Line(line) => line,
            Heard::Sign(_) => continue,
            Heard::End => {
                let cause = link.fault().unwrap_or_else(|| "the app server ended".into());
                return Err(failed(link, handshake.stage(), cause));
            }
        };
        let Some(frame) = Frame::parse(&line) else {
            continue;
        };
        let mut send = Vec::new();
        let thread = handshake.hear(frame, &mut send);
        say(link, send);
        match thread {
            Ok(Some(thread)) => return Ok(thread),
            Ok(None) => {}
            Err(fault) => return Err(failed(link, handshake.stage(), fault.into())),
        }
    }
}

/// Takes the one turn, and says what came of it. The token is looked at first: a run that was cancelled is aborted, whatever
/// else has happened by then.
pub(crate) async fn take_turn(
    link: &mut Link,
    thread: String,
    job: &Job,
    token: &CancellationToken,
) -> RunResult {
    let (mut turn, start) = Turn::begin(thread, &job.task);
    link.send(start);
    let end = loop {
        let heard = tokio::select! {
            biased;
            () = token.cancelled() => {
                // Nobody waits for the answer: the release ends what does not listen.
                say(link, turn.interrupt());
                return RunResult::aborted().with_output(output(&turn));
            }
            heard = link.next() => heard,
        };
        if matches!(heard, Heard::End) {
            break silence(link, &turn);
        }
        take(link, &mut turn, heard);
        if let Some(end) = turn.end() {
            break settled(link, &mut turn, end).await;
        }
    };
    match end {
        End::Answered(answer) => RunResult::completed(answer),
        End::Failed(failure, fault) => {
            let failure = failure.with_exit(link.exited());
            failed(&turn, job, &failure, &fault)
        }
    }
}

/// Ends the app server with all that it started, and reads meanwhile what it still writes.
pub(crate) async fn release(product: &Product, rest: oneshot::Receiver<Rest>) -> Result<(), RunFault> {
    let drained = async {
        if let Ok(rest) = rest.await {
            rest.drain().await;
        }
        pending::<Infallible>().await
    };
    let released = tokio::select! {
        biased;
        released = product.release() => released,
        never = drained => match never {},
    };
    released.map_err(|error| unreleased(error, product.exited()))
}

fn unreleased(error: ReleaseError, exit: Option<LeaderExit>) -> RunFault {
    let failure = Failure::unknown(Stage::Teardown).with_exit(exit);
    RunFault::new(format!("{PREFIX}{failure}")).caused_by(error)
}

fn say(link: &mut Link, frames: impl IntoIterator<Item = Value>) {
    for frame in frames {
        link.send(frame);
    }
}

fn take(link: &mut Link, turn: &mut Turn, heard: Heard) {
    match heard {
        Heard::Line(line) => {
            let mut send = Vec::new();
            if let Some(frame) = Frame::parse(&line) {
                turn.hear(frame, &mut send);
            }
            say(link, send);
        }
        Heard::Sign(fact) => turn.note(fact),
        Heard::End => {}
    }
}

/// The app server says no more, and the turn is not over.
fn silence(link: &mut Link, turn: &Turn) -> End {
    let fault = link.fault().map_or_else(
        || "the app server ended before the turn".to_owned(),
        |fault| fault.to_string(),
    );
    let failure = match link.exited() {
        Some(exit) => Failure::process_exit(exit),
        None => Failure::unknown(turn.stage()),
    };
    End::Failed(failure, Fault(fault))
}

/// Hears what came together with the end: a request that nobody can answer takes an answer away, and a failure is told
/// with what is known of it. Where the app server has stopped to talk, its exit is waited for.
async fn settled(link: &mut Link, turn: &mut Turn, end: End) -> End {
    let answered = matches!(end, End::Answered(_));
    let moment = async {
        if answered {
            yield_now().await;
        } else {
            sleep(SETTLING).await;
        }
    };
    tokio::pin!(moment);
    let mut exiting = false;
    loop {
        tokio::select! {
            // What is there comes first. Who never stops to talk is cut off by the runtime, which lets nobody read for ever.
            biased;
            heard = link.next() => match heard {
                Heard::End => break,
                heard @ (Heard::Line(_) | Heard::Sign(_)) => take(link, turn, heard),
            },
            () = &mut moment, if !exiting => {
                exiting = !answered && link.is_closing();
                if !exiting {
                    break;
                }
            }
        }
    }
    turn.end().unwrap_or(end)
}

fn failed(turn: &Turn, job: &Job, failure: &Failure, fault: &Fault) -> RunResult {
    let (provider, stop) = (&job.provider, failure.stop());
    tracing::warn!("subagent-codex \"{provider}\": child run failed ({stop}): {failure}");
    tracing::debug!("subagent-codex \"{provider}\": {fault}");
    let mut diagnostic = failure.to_string();
    if let Some(fact) = turn.fact() {
        diagnostic.push('\n');
        diagnostic.push_str(&fact.line(job.mode));
    }
    RunResult::failed(stop, Diagnostic::new(diagnostic)).with_output(output(turn))
}

fn output(turn: &Turn) -> Vec<ContentBlock> {
    turn.output().map(ContentBlock::text).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn s206_what_could_not_be_released_is_named_by_the_source_alone() {
        let left = ReleaseError::Survivors("4242 cat /private/secret.txt".to_owned());
        let fault = unreleased(left.clone(), Some(LeaderExit::Code(3)));
        assert_eq!(
            fault.to_string(),
            "subagent-codex: Product subagent failure (product: Codex; stage: teardown; category: unknown; exit code: 3)"
        );
        assert_eq!(
            fault.source().expect("what is behind it").to_string(),
            left.to_string()
        );
    }
}
