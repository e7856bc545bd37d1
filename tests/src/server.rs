//! `dsh mcp` as a child process, and a client that speaks JSON-RPC to it line by line.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::Room;

/// Nothing that these tests ask for takes longer, on a busy machine either.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// How to start the server.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerOptions<'a> {
    /// The configuration file's text.
    pub config: &'a str,
    /// Variables of the server's own environment, besides the room's.
    pub env: &'a [(&'a str, &'a str)],
    /// Arguments behind `mcp`.
    pub arguments: &'a [&'a str],
}

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A running server and its one client.
///
/// The client reads only while it waits for something, so a test can also be a client that does not read.
#[derive(Debug)]
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<Lines<BufReader<ChildStdout>>>,
    last_id: i64,
    answers: HashMap<i64, Value>,
    others: Vec<Value>,
    /// The room is dropped after the child: what the child leaves is ended then.
    pub room: Room,
}

impl Server {
    /// Starts a server with the default configuration and shakes hands.
    pub async fn start() -> Server {
        Server::start_with(ServerOptions::default()).await
    }

    /// Starts a server and shakes hands.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub async fn start_with(options: ServerOptions<'_>) -> Server {
        let room = Room::new();
        let work = room.work();
        let mut server = Server::spawn(room, &work, options);
        server.shake_hands().await;
        server
    }

    /// Starts a server in `directory` and says nothing to it yet.
    ///
    /// # Panics
    ///
    /// When the binary is not named or cannot be started.
    pub fn spawn(room: Room, directory: &Path, options: ServerOptions<'_>) -> Server {
        std::fs::write(room.home().join("config.toml"), options.config).expect("the configuration file");
        let stderr = std::fs::File::create(room.home().join("stderr.log")).expect("a file for stderr");
        let mut command = room.dsh();
        command
            .arg("mcp")
            .args(options.arguments)
            .current_dir(directory)
            .envs(options.env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        let mut child = command.spawn().expect("dsh starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Server {
            child,
            stdin,
            stdout,
            last_id: 0,
            answers: HashMap::new(),
            others: Vec::new(),
            room,
        }
    }

    /// `initialize` and its confirmation; returns the server's answer.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn shake_hands(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "integration-tests", "version": "1"}
        });
        let answer = self.request("initialize", params).await;
        assert!(answer["result"].is_object(), "{answer}");
        self.notify("notifications/initialized", json!({})).await;
        answer
    }

    /// The server's process id.
    ///
    /// # Panics
    ///
    /// When it was waited for already.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the server was not waited for")
    }

    /// Sends a request and returns its whole answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Sends a request and returns its id.
    pub async fn send(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
            .await;
        id
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
            .await;
    }

    /// Sends `notifications/cancelled` for a request.
    pub async fn cancel(&mut self, id: i64) {
        self.notify(
            "notifications/cancelled",
            json!({"requestId": id, "reason": "the test said so"}),
        )
        .await;
    }

    /// Sends any line.
    ///
    /// # Panics
    ///
    /// When the server takes nothing any more.
    pub async fn line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        let sent = async {
            stdin.write_all(format!("{line}\n").as_bytes()).await?;
            stdin.flush().await
        };
        timeout(DEADLINE, sent)
            .await
            .expect("the server reads")
            .expect("the server's stdin is open");
    }

    /// The answer to a request, as soon as it is there.
    ///
    /// # Panics
    ///
    /// When the server does not answer within the deadline, or ends.
    pub async fn answer(&mut self, id: i64) -> Value {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            let read = timeout(DEADLINE, self.read()).await;
            let read = read.unwrap_or_else(|_| panic!("no answer to request {id}\n{}", self.log()));
            assert!(
                read,
                "the server ended before it answered request {id}\n{}",
                self.log()
            );
        }
    }

    /// Whether an answer to a request has been read, while waiting for others.
    pub fn has_answered(&self, id: i64) -> bool {
        self.answers.contains_key(&id)
    }

    /// The next message that is no answer to a request of ours: a notification, or an answer without our id.
    ///
    /// # Panics
    ///
    /// When none comes within the deadline.
    pub async fn other(&mut self) -> Value {
        while self.others.is_empty() {
            let read = timeout(DEADLINE, self.read()).await;
            let read = read.unwrap_or_else(|_| panic!("no further message\n{}", self.log()));
            assert!(read, "the server ended\n{}", self.log());
        }
        self.others.remove(0)
    }

    /// Sends a signal to the server.
    ///
    /// # Panics
    ///
    /// When the server is gone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).expect("the server takes a signal");
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Reads no more: the server's output is closed.
    pub fn close_output(&mut self) {
        self.stdout = None;
    }

    /// How the server ended; everything it still said is read, and checked to be protocol.
    ///
    /// # Panics
    ///
    /// When it does not end within the deadline.
    pub async fn exit(&mut self) -> Exit {
        let ended = async {
            while self.stdout.is_some() && self.read().await {}
            self.child.wait().await.expect("the server can be waited for")
        };
        let status = timeout(DEADLINE, ended).await;
        exit(status.unwrap_or_else(|_| panic!("the server does not end\n{}", self.log())))
    }

    /// The usual end of a test: the client closes its end, the server exits with 0, and nothing is left.
    ///
    /// # Panics
    ///
    /// When anything else happens.
    pub async fn close(mut self) {
        self.close_input();
        assert_eq!(self.exit().await, Exit::Code(0), "{}", self.log());
        self.room.assert_empty();
    }

    /// What the server wrote to stderr.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.room.home().join("stderr.log")).unwrap_or_default()
    }

    /// Reads one message; false at the end of the output.
    async fn read(&mut self) -> bool {
        let Some(stdout) = self.stdout.as_mut() else {
            return false;
        };
        let Some(line) = stdout.next_line().await.expect("stdout is readable text") else {
            return false;
        };
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("not protocol ({error}): {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "not protocol: {line}");
        match message["id"].as_i64() {
            Some(id) if message["method"].is_null() => _ = self.answers.insert(id, message),
            _ => self.others.push(message),
        }
        true
    }
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}
