//! What the model reads about a foreground command, and how to read it back.

use std::time::Duration;

use dsh_bash::{Pipe, ShellExit};
use dsh_tools::TerminalExit;

/// Shown when something that this tree does not contain keeps the output open.
pub(crate) const PIPE_HELD: &str = "pipe still held by a process outside the tree";

/// Everything that a foreground result says.
#[derive(Debug, Clone)]
pub(crate) struct Report<'a> {
    /// The output, streams already joined.
    pub(crate) body: String,
    /// What was found beside the exit: one line each, without brackets.
    pub(crate) notes: Vec<String>,
    /// The timeout that ended the command, if one did.
    pub(crate) timed_out: Option<Duration>,
    /// How the shell ended.
    pub(crate) exit: &'a ShellExit,
}

impl Report<'_> {
    /// The result text: the body, then one marker line per fact. The exit's marker is always the last line, so that
    /// [`parse_exit`] finds it; a clean exit has none.
    pub(crate) fn text(&self) -> String {
        let mut markers: Vec<String> = self.notes.iter().map(|note| format!("[{note}]")).collect();
        if let Some(after) = self.timed_out {
            markers.push(format!("[timed out after {}ms]", after.as_millis()));
        }
        match self.exit {
            ShellExit::Code(0) => {}
            ShellExit::Code(code) => markers.push(format!("[exit code: {code}]")),
            ShellExit::Signal { name, .. } => markers.push(format!("[killed by signal: {name}]")),
            ShellExit::Failed { reason } | ShellExit::Unseen { reason } => {
                markers.push(format!("[{reason}]"))
            }
        }
        let mut text = if self.body.is_empty() {
            "(no output)".to_owned()
        } else {
            self.body.clone()
        };
        if !markers.is_empty() {
            end_line(&mut text);
            text.push_str(&markers.join("\n"));
        }
        text
    }
}

/// Joins both streams: standard output, then standard error under its heading.
pub(crate) fn sections(stdout: &str, stderr: &str) -> String {
    let mut body = stdout.to_owned();
    if !stderr.is_empty() {
        if !body.is_empty() {
            end_line(&mut body);
        }
        body.push_str("[stderr]\n");
        body.push_str(stderr);
    }
    body
}

/// The note about an output that did not end, if it is one.
pub(crate) fn pipe_note(pipe: Pipe) -> Option<String> {
    match pipe {
        Pipe::Closed | Pipe::HeldByMember => None,
        Pipe::HeldOutside => Some(PIPE_HELD.to_owned()),
    }
}

/// `1 process` or `N processes`.
pub(crate) fn processes(count: usize) -> String {
    format!("{count} {}", if count == 1 { "process" } else { "processes" })
}

/// Takes a result text apart again: the text without the exit's marker, and the exit.
///
/// Only a marker that is a line of its own at the very end counts. A text that consists of such a line alone is
/// output that looks like one; a clean command whose last line imitates a marker cannot be told from the real thing.
pub fn parse_exit(text: &str) -> (&str, TerminalExit) {
    let found = text.rsplit_once('\n').and_then(|(body, line)| {
        let marker = line.strip_prefix('[')?.strip_suffix(']')?;
        let exit = match marker.split_once(": ")? {
            ("killed by signal", name) if is_signal_name(name) => TerminalExit::Signal(name.to_owned()),
            ("exit code", code) => TerminalExit::Code(code.parse().ok()?),
            _ => return None,
        };
        Some((body, exit))
    });
    found.unwrap_or((text, TerminalExit::Code(0)))
}

fn is_signal_name(name: &str) -> bool {
    name.starts_with("SIG")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-".contains(&byte))
}

fn end_line(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests;
