//! One run: the handshake, and the turn.

use std::time::Duration;

use dsh_llm::ContentBlock;
use dsh_subagent::RunResult;
use dsh_subagent_process::{Failure, Reports};
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::PermissionMode;
use crate::failure::{Category, Stage, failure};
use crate::frame::Frame;
use crate::handshake::Handshake;
use crate::link::{Heard, Link};
use crate::turn::{End, Turn};

/// How long the end of a turn waits for what belongs to it: a request that nobody can answer, what Codex wrote for people
/// just before, and its exit.
const SETTLING: Duration = Duration::from_millis(20);

/// Why there is no thread.
pub(crate) enum Unstarted {
    Cancelled,
    Failed(Failure),
}

/// What is asked of Codex.
pub(crate) struct Job {
    pub(crate) reports: Reports,
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
        let failed = |stage| failure(stage, Category::UNKNOWN).with_exit(link.exited());
        let line = match heard {
            Heard::Line(line) => line,
            Heard::Sign(_) => continue,
            Heard::End => {
                let failed = failed(handshake.stage());
                let cause = link.fault().unwrap_or_else(|| "the app server ended".into());
                return Err(Unstarted::Failed(failed.caused_by(cause)));
            }
        };
        let Some(frame) = Frame::parse(&line) else {
            continue;
        };
        let mut send = Vec::new();
        let thread = handshake.hear(frame, &mut send);
        let thread = thread.map_err(|fault| failed(handshake.stage()).caused_by(fault));
        say(link, send);
        if let Some(thread) = thread.map_err(Unstarted::Failed)? {
            return Ok(thread);
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
        End::Failed(stop, failure) => {
            let failure = failure.with_exit(link.exited());
            let fact = turn.fact().map(|fact| fact.line(job.mode));
            let failed = job.reports.run_failed(stop, &failure, fact.as_deref());
            failed.with_output(output(&turn))
        }
    }
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
    let (stage, category) = match link.exited() {
        Some(_) => (Stage::Process, Category::PROCESS_EXIT),
        None => (turn.stage(), Category::UNKNOWN),
    };
    let cause = link
        .fault()
        .unwrap_or_else(|| "the app server ended before the turn".into());
    End::Failed(category.stop(), failure(stage, category).caused_by(cause))
}

/// Hears what came together with the end: a request that nobody can answer takes an answer away, and a failure is told
/// with what is known of it. Where the app server has stopped to talk, its exit is waited for.
async fn settled(link: &mut Link, turn: &mut Turn, end: End) -> End {
    let answered = matches!(end, End::Answered(_));
    let moment = sleep(SETTLING);
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

fn output(turn: &Turn) -> Vec<ContentBlock> {
    turn.output().map(ContentBlock::text).into_iter().collect()
}
