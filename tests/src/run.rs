//! `dsh run` in a room, with a model whose answers a test writes down.

use std::process::{Output, Stdio};

use dsh_testkit::eventually_within;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::Room;
use crate::server::DEADLINE;

/// What `dsh run` printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; nothing if a signal ended it.
    pub code: Option<i32>,
    /// Everything on stdout.
    pub stdout: String,
    /// Everything on stderr.
    pub stderr: String,
}

/// A `dsh run` that is under way. Its stdout goes to a file, so that a test can look at it.
#[derive(Debug)]
pub struct Running<'a> {
    room: &'a Room,
    child: Child,
}

impl Room {
    /// Writes a script for the model, and returns what `--model` is to be given.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub fn script(&self, name: &str, turns: Value) -> String {
        let path = self.file(name);
        std::fs::write(&path, json!({ "turns": turns }).to_string()).expect("a script");
        format!("scripted:{name}")
    }

    /// `dsh run` with these arguments, and nothing on stdin.
    ///
    /// # Panics
    ///
    /// When it does not end within the deadline.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.dsh();
        command.arg("run").args(arguments);
        ran(command).await
    }

    /// Starts `dsh run` with these arguments.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn running(&self, arguments: &[&str]) -> Running<'_> {
        let mut command = self.dsh();
        command.arg("run").args(arguments);
        self.follow(command)
    }

    /// Starts a command that is, or becomes, `dsh run`.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn follow(&self, mut command: Command) -> Running<'_> {
        let stdout = std::fs::File::create(self.file("stdout")).expect("a file");
        let child = command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .expect("dsh starts");
        Running { room: self, child }
    }
}

impl Running<'_> {
    /// What it has printed by now.
    pub fn stdout(&self) -> String {
        std::fs::read_to_string(self.room.file("stdout")).unwrap_or_default()
    }

    /// Waits until it has printed this.
    ///
    /// # Panics
    ///
    /// When it does not within the deadline.
    pub async fn prints(&self, text: &str) {
        let printed = || self.stdout().contains(text);
        eventually_within(&format!("{text:?} is printed"), DEADLINE, printed).await;
    }

    /// Waits until that many turns of its session, which is logged to `s.jsonl`, are over: from then on only something
    /// new opens another one.
    ///
    /// # Panics
    ///
    /// When they are not within the deadline.
    pub async fn rests(&self, turns: usize) {
        let over = || {
            let log = std::fs::read_to_string(self.room.file("s.jsonl")).unwrap_or_default();
            log.matches(r#"{"type":"turn/end""#).count() >= turns
        };
        eventually_within(&format!("{turns} turns are over"), DEADLINE, over).await;
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.id().expect("it runs").cast_signed();
        kill(Pid::from_raw(pid), signal).expect("the signal is sent");
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// When it does not end within the deadline.
    pub async fn ended(self) -> Ran {
        let ended = timeout(DEADLINE, self.child.wait_with_output()).await;
        let mut ran = Ran::from(ended.expect("dsh ends within the deadline").expect("its output"));
        ran.stdout = std::fs::read_to_string(self.room.file("stdout")).expect("its output");
        ran
    }
}

impl Ran {
    /// The lines of `stream-json`, or the one of `json`.
    ///
    /// # Panics
    ///
    /// When one is no JSON object.
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        let lines: Vec<Value> = self.stdout.lines().map(parse).collect();
        assert!(lines.iter().all(Value::is_object), "{}", self.stdout);
        lines
    }

    /// The lines of `stream-json` of one type.
    ///
    /// # Panics
    ///
    /// When a line is no JSON object.
    pub fn of_type(&self, kind: &str) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["type"] == kind);
        lines
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Runs a command to its end.
///
/// # Panics
///
/// When it does not end within the deadline.
pub async fn ran(mut command: Command) -> Ran {
    command.stdin(Stdio::null());
    let output = timeout(DEADLINE, command.output()).await;
    Ran::from(output.expect("it ends within the deadline").expect("it runs"))
}

/// An answer that calls `bash` in the background.
pub fn starts(command: &str) -> Value {
    let arguments =
        json!({"command": command, "description": "run a test command", "run_in_background": true});
    json!({"tool_calls": [{"name": "bash", "arguments": arguments}]})
}

/// An answer that says this, and calls nothing.
pub fn says(text: &str) -> Value {
    json!({ "text": text })
}
