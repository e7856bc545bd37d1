//! Asking the person at the terminal.

use std::fs::File;
use std::io::{self, Write};

use async_trait::async_trait;
use dsh_tools::{Approval, Approver, PendingCall};
use rustix::fs::OFlags;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The terminal of this process, wherever its standard streams go.
const TERMINAL: &str = "/dev/tty";

/// The longest answer that is looked at.
const MAX_ANSWER: usize = 1024;

/// Asks on the terminal, one question at a time; without a terminal nobody answers.
#[derive(Debug, Default)]
pub(super) struct AskOnTerminal {
    turn: Mutex<()>,
}

#[async_trait]
impl Approver for AskOnTerminal {
    async fn ask(&self, call: &PendingCall, token: &CancellationToken) -> Approval {
        let _turn = self.turn.lock().await;
        let question = question(call);
        let answered = tokio::select! {
            biased;
            () = token.cancelled() => return Approval::Unanswered,
            answered = ask(&question) => answered,
        };
        answered.unwrap_or_else(|error| {
            tracing::info!("nobody can be asked on {TERMINAL}: {error}");
            Approval::Unanswered
        })
    }
}

/// What is to be run, on one line: what a model writes must not draw on the terminal.
fn question(call: &PendingCall) -> String {
    let args = match &call.args {
        Value::String(raw) => serde_json::from_str(raw).unwrap_or_else(|_| call.args.clone()),
        args => args.clone(),
    };
    let what = match args["command"].as_str() {
        Some(command) => command.to_owned(),
        None => args.to_string(),
    };
    let what: String = what.chars().flat_map(visible).collect();
    format!("\r\x1b[Kdsh: run {}: {what}\ndsh: allow it? [y/N] ", call.tool)
}

/// A character as it can be shown; control characters are escaped.
fn visible(c: char) -> impl Iterator<Item = char> {
    let (plain, escaped) = match c.is_control() {
        true => (None, Some(c.escape_default())),
        false => (Some(c), None),
    };
    plain.into_iter().chain(escaped.into_iter().flatten())
}

async fn ask(question: &str) -> io::Result<Approval> {
    let mut terminal = File::options().read(true).write(true).open(TERMINAL)?;
    terminal.write_all(question.as_bytes())?;
    // Opened here, so nobody else sees that it does not block. It is read like a pipe: whenever something came.
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
