//! Asking the person at the terminal.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_output::visible_line;
use dsh_tools::{Approval, Approver, PendingCall};
use rustix::fs::OFlags;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot};

use super::printer::{Asked, Question, TERMINAL};

/// The longest answer that is looked at.
const MAX_ANSWER: usize = 1024;

/// Asks on the terminal; without a terminal nobody answers.
///
/// Whoever follows the run takes the questions, shows what led to each, and has it written.
#[derive(Debug)]
pub(super) struct AskOnTerminal(mpsc::UnboundedSender<Question>);

impl AskOnTerminal {
    /// With where its questions go.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Question>) {
        let (questions, taken) = mpsc::unbounded_channel();
        (Self(questions), taken)
    }

    async fn answer(&self, text: String) -> io::Result<Approval> {
        let (asked, written) = oneshot::channel();
        if self.0.send(Question { text, asked }).is_err() {
            return Ok(Approval::Unanswered);
        }
        match written.await {
            Ok(asked) => read(asked?).await,
            // Nothing is shown any more.
            Err(_) => Ok(Approval::Unanswered),
        }
    }
}

#[async_trait]
impl Approver for AskOnTerminal {
    async fn ask(&self, call: &PendingCall) -> Approval {
        let answered = self.answer(question(call)).await;
        answered.unwrap_or_else(|error| {
            tracing::info!("nobody can be asked on {TERMINAL}: {error}");
            Approval::Unanswered
        })
    }
}

/// What is to be run, on one line, and where, if that is not where the session works: what a model writes must neither
/// draw on the terminal nor look like something else.
fn question(call: &PendingCall) -> String {
    let args = &call.args;
    let what = match args["command"].as_str() {
        Some(command) => command.to_owned(),
        None => args.to_string(),
    };
    let mut question = format!("dsh: run {}: {}\n", visible_line(&call.tool), visible_line(&what));
    if let Some(workdir) = args["workdir"].as_str()
        && let Some(place) = elsewhere(call.caller.as_deref().and_then(Agent::cwd), workdir)
    {
        let place = place.to_string_lossy();
        question.push_str(&format!("dsh: in {}\n", visible_line(&place)));
    }
    question.push_str("dsh: allow it? [y/N] ");
    question
}

/// Where a call works that names a directory, unless it is the session's.
fn elsewhere(session: Option<&Path>, workdir: &str) -> Option<PathBuf> {
    let place = session.map_or_else(|| PathBuf::from(workdir), |cwd| cwd.join(workdir));
    (session != Some(&place)).then_some(place)
}

async fn read(asked: Asked) -> io::Result<Approval> {
    let Asked {
        terminal,
        open: _open,
    } = asked;
    // Opened for this question, so nobody else sees that it does not block. It is read like a pipe: whenever something
    // came.
    let flags = rustix::fs::fcntl_getfl(&terminal)?;
    rustix::fs::fcntl_setfl(&terminal, flags | OFlags::NONBLOCK)?;
    let mut terminal = Receiver::from_file_unchecked(terminal)?;
    let mut answer = Vec::new();
    while !answer.contains(&b'\n') && answer.len() < MAX_ANSWER {
        if terminal.read_buf(&mut answer).await? == 0 {
            return Ok(Approval::Unanswered);
        }
    }
    let answer = String::from_utf8_lossy(&answer).trim().to_ascii_lowercase();
    Ok(match answer.as_str() {
        "y" | "yes" => Approval::Allowed,
        _ => Approval::Denied,
    })
}
