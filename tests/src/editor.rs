//! `dsh acp` in a room, and an editor that speaks raw lines to it.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::Room;
use crate::server::DEADLINE;

/// A running agent and its editor.
#[derive(Debug)]
pub struct Editor {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last_id: u64,
    /// Everything that came and is no answer, in order.
    pub seen: Vec<Value>,
}

impl Room {
    /// Starts `dsh acp` with these arguments, and says hello with these capabilities.
    ///
    /// # Panics
    ///
    /// When it does not answer within the deadline.
    pub async fn editor(&self, arguments: &[&str], capabilities: Value) -> Editor {
        let mut child = self
            .dsh()
            .arg("acp")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dsh starts");
        let mut editor = Editor {
            input: child.stdin.take().expect("a pipe"),
            output: BufReader::new(child.stdout.take().expect("a pipe")).lines(),
            child,
            last_id: 0,
            seen: Vec::new(),
        };
        let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        editor.call("initialize", hello).await;
        editor
    }
}

impl Editor {
    /// Opens a session that works in the room; the answer.
    ///
    /// # Panics
    ///
    /// As [`call`](Self::call).
    pub async fn opens(&mut self, room: &Room) -> Value {
        let params = json!({"cwd": room.work(), "mcpServers": []});
        self.call("session/new", params).await["result"].clone()
    }

    /// Prompts a session and waits for the end of its turn; the answer.
    ///
    /// # Panics
    ///
    /// As [`call`](Self::call).
    pub async fn prompts(&mut self, session: &Value, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        self.call("session/prompt", params).await
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Panics
    ///
    /// When none comes within the deadline, or anything that is not protocol.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.sends(method, params).await;
        self.hears(|message| message["id"] == id && message.get("method").is_none())
            .await
    }

    /// Sends a request and waits for nothing; its id.
    ///
    /// # Panics
    ///
    /// When the agent no longer reads.
    pub async fn sends(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.writes(json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))
            .await;
        self.last_id
    }

    /// Tells something that has no answer.
    ///
    /// # Panics
    ///
    /// When the agent no longer reads.
    pub async fn tells(&mut self, method: &str, params: Value) {
        self.writes(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    async fn writes(&mut self, message: Value) {
        let written = self.input.write_all(format!("{message}\n").as_bytes()).await;
        written.expect("the agent reads");
    }

    /// The updates of this sort so far.
    pub fn updates(&self, sort: &str) -> Vec<&Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == sort).collect()
    }

    /// The next message like this. Those before it are in [`seen`](Self::seen).
    ///
    /// # Panics
    ///
    /// When none comes within the deadline, or anything that is not protocol.
    pub async fn hears(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let heard = async {
            loop {
                let line = self.output.next_line().await.expect("stdout is text");
                let line = line.expect("the agent writes on");
                let message: Value = serde_json::from_str(&line).expect("nothing but protocol");
                if wanted(&message) {
                    return message;
                }
                self.seen.push(message);
            }
        };
        let heard = timeout(DEADLINE, heard).await;
        heard.unwrap_or_else(|_| panic!("it does not come in time: {:#?}", self.seen))
    }

    /// The exit code, once it has ended; nothing if a signal ended it.
    ///
    /// # Panics
    ///
    /// When it does not end within the deadline.
    pub async fn exit_code(&mut self) -> Option<i32> {
        let status = timeout(DEADLINE, self.child.wait()).await;
        status.expect("it ends in time").expect("it was started").code()
    }

    /// Closes its end, and waits for the agent's: its exit code.
    ///
    /// # Panics
    ///
    /// As [`exit_code`](Self::exit_code).
    pub async fn leaves(self) -> Option<i32> {
        let Self {
            mut child,
            input,
            output,
            ..
        } = self;
        drop(input);
        let status = timeout(DEADLINE, child.wait()).await;
        drop(output);
        status.expect("it ends in time").expect("it was started").code()
    }

    /// Sends the agent a signal.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.id().expect("it was not waited for");
        kill(Pid::from_raw(pid.cast_signed()), signal).expect("it is there");
    }
}
