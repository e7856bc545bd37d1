//! A child that is spoken to in lines of JSON.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long a child may take for what it is waited for. Products are large programs: where many start at once, one may be
/// silent for half a minute before it says its first word.
const DEADLINE: Duration = Duration::from_secs(60);

/// A running child with pipes at its stdin and stdout. Dropping it kills the child.
#[derive(Debug)]
pub struct Dialogue {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    heard: Vec<Value>,
    last: Instant,
    log: PathBuf,
}

impl Dialogue {
    pub(crate) fn start(mut command: Command, log: PathBuf) -> Dialogue {
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("its stdout is a pipe");
        Dialogue {
            child,
            stdin,
            stdout: BufReader::new(stdout).lines(),
            heard: Vec::new(),
            last: Instant::now(),
            log,
        }
    }

    /// Sends one line.
    ///
    /// # Panics
    ///
    /// When the child takes nothing any more.
    pub async fn say(&mut self, message: Value) {
        let stdin = self.stdin.as_mut().expect("its stdin is open");
        let line = format!("{message}\n");
        let said = timeout(DEADLINE, stdin.write_all(line.as_bytes())).await;
        said.expect("the child reads").expect("its stdin is open");
    }

    /// The next line that is what is wanted; the others before it are in [`heard`](Self::heard).
    ///
    /// # Panics
    ///
    /// When there is none within the deadline, or a line is not JSON.
    pub async fn hear(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            while let Some(message) = self.next().await {
                if wanted(&message) {
                    return Some(message);
                }
                self.heard.push(message);
            }
            None
        };
        let found = timeout(DEADLINE, found).await.ok().flatten();
        found.unwrap_or_else(|| {
            let silent = self.last.elapsed();
            let heard: Vec<String> = self.heard.iter().map(Value::to_string).collect();
            panic!(
                "no {what}; silent for {silent:?} after {heard:#?}\n{}\n{}",
                self.state(),
                self.log()
            )
        })
    }

    /// Everything that was passed over so far.
    pub fn heard(&self) -> &[Value] {
        &self.heard
    }

    /// The child's process id.
    ///
    /// # Panics
    ///
    /// When it was waited for already.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the child was not waited for")
    }

    /// Closes its stdin, reads to the end and waits for its exit.
    ///
    /// # Panics
    ///
    /// When it does not exit within the deadline.
    pub async fn end(&mut self) -> ExitStatus {
        self.stdin = None;
        let ended = async {
            while let Some(message) = self.next().await {
                self.heard.push(message);
            }
            self.child.wait().await.expect("the child can be waited for")
        };
        let ended = timeout(DEADLINE, ended).await;
        ended.unwrap_or_else(|_| panic!("the child does not end\n{}", self.log()))
    }

    /// What it wrote to stderr.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it waits or works, and how long it has worked: a child that is stuck differs from one that gets no turn.
    fn state(&self) -> String {
        let Some(pid) = self.child.id() else {
            return "it was waited for".to_owned();
        };
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let status = read("status");
        let told = status
            .lines()
            .filter(|line| line.starts_with("State") || line.contains("ctxt_switches"));
        // Nanoseconds on a processor, and waiting for one.
        let times = format!("schedstat: {}", read("schedstat").trim());
        told.chain([times.as_str()]).collect::<Vec<_>>().join("; ")
    }

    async fn next(&mut self) -> Option<Value> {
        let line = self.stdout.next_line().await.expect("stdout is readable text")?;
        self.last = Instant::now();
        let message = serde_json::from_str(&line);
        Some(message.unwrap_or_else(|error| panic!("not JSON ({error}): {line:?}")))
    }
}
