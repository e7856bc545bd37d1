//! An editor that goes on reading whatever happens, and keeps what came.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Room;
use crate::chaos::Faults;
use crate::chaos::ending::Client;
use crate::chaos::weather::Weather;
use crate::chaos::wire::{Gone, PATIENCE};

/// A running `dsh acp` and its editor.
pub(super) struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    shared: Arc<Shared>,
    reader: JoinSet<()>,
    last_id: i64,
}

struct Shared {
    heard: Mutex<Heard>,
    state: watch::Sender<State>,
}

/// What came.
#[derive(Debug, Default)]
pub(super) struct Heard {
    open: BTreeSet<i64>,
    answers: BTreeMap<i64, Value>,
    /// What was shown of each session, in order.
    pub(super) updates: Vec<Value>,
    pub(super) faults: Faults,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    messages: u64,
    /// It reads nothing before this.
    deaf: Option<Instant>,
    over: bool,
}

impl Editor {
    /// Starts an agent in a room, and says hello.
    pub(super) async fn start(room: &Room, weather: Weather) -> Result<Editor, Gone> {
        let log = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(room.home().join("stderr.log"));
        let mut command = weather.dsh(room);
        command
            .arg("acp")
            .env("RUST_LOG", "info")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.map_err(|_| Gone)?);
        let mut child = command.spawn().map_err(|_| Gone)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or(Gone)?;
        let shared = Arc::new(Shared {
            heard: Mutex::default(),
            state: watch::Sender::new(State::default()),
        });
        let mut reader = JoinSet::new();
        reader.spawn(read(stdout, Arc::clone(&shared)));
        let mut editor = Editor {
            child,
            stdin,
            shared,
            reader,
            last_id: 0,
        };
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        editor.call("initialize", hello).await?;
        Ok(editor)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// What came so far.
    pub(super) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.shared.heard()
    }

    /// Asks, and waits for the answer.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Gone> {
        let id = self.asks(method, params).await?;
        match self.answer(id, PATIENCE).await? {
            Some(answer) => Ok(answer),
            None => {
                let fault = format!("no answer to {method} ({id}) within {PATIENCE:?}");
                self.heard().faults.push(fault);
                Err(Gone)
            }
        }
    }

    /// Asks, and does not wait.
    pub(super) async fn asks(&mut self, method: &str, params: Value) -> Result<i64, Gone> {
        self.last_id += 1;
        let id = self.last_id;
        self.heard().open.insert(id);
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await?;
        Ok(id)
    }

    /// Says something that has no answer.
    pub(super) async fn tells(&mut self, method: &str, params: Value) -> Result<(), Gone> {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await
    }

    /// The answer, if it comes within this time.
    pub(super) async fn answer(&self, id: i64, limit: Duration) -> Result<Option<Value>, Gone> {
        let mut state = self.shared.state.subscribe();
        let answered = async {
            loop {
                let over = state.borrow_and_update().over;
                if let Some(answer) = self.heard().answers.get(&id) {
                    return Ok(answer.clone());
                }
                if over || state.changed().await.is_err() {
                    return Err(Gone);
                }
            }
        };
        match timeout(limit, answered).await {
            Ok(answer) => answer.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reads nothing for so long.
    pub(super) fn be_deaf(&self, time: Duration) {
        let until = Instant::now() + time;
        self.shared.state.send_modify(|state| state.deaf = Some(until));
    }

    /// Waits for the end of the agent, for so long, and reads all that it said.
    pub(super) async fn ended(&mut self, limit: Duration) -> Result<ExitStatus, String> {
        let end = async {
            let status = self.child.wait().await.map_err(|error| error.to_string())?;
            while self.reader.join_next().await.is_some() {}
            Ok(status)
        };
        let end = timeout(limit, end).await;
        end.unwrap_or_else(|_| Err(format!("the agent did not end within {limit:?}")))
    }

    async fn line(&mut self, message: &Value) -> Result<(), Gone> {
        let stdin = self.stdin.as_mut().ok_or(Gone)?;
        let line = format!("{message}\n");
        let sent = timeout(PATIENCE, stdin.write_all(line.as_bytes())).await;
        sent.map_err(|_| Gone)?.map_err(|_| Gone)
    }
}

impl Client for Editor {
    fn close_input(&mut self) {
        self.stdin = None;
    }

    async fn close_output(&mut self) {
        self.reader.shutdown().await;
    }
}

impl Shared {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    /// Requests without an answer.
    pub(super) fn unanswered(&self) -> &BTreeSet<i64> {
        &self.open
    }

    fn takes(&mut self, line: &str) {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let is_answer = message["method"].is_null();
        match message["id"].as_i64() {
            _ if message["jsonrpc"] != "2.0" => self.faults.push(format!("no protocol: {line:?}")),
            Some(id) if is_answer && self.open.remove(&id) => _ = self.answers.insert(id, message),
            None if message["method"] == "session/update" => self.updates.push(message),
            _ => self.faults.push(format!("nobody asked for {line:?}")),
        }
    }
}

async fn read(stdout: ChildStdout, shared: Arc<Shared>) {
    let mut lines = BufReader::new(stdout);
    loop {
        let deaf = shared.state.borrow().deaf;
        if let Some(until) = deaf {
            // sleep: that nobody reads for a while is what is tried.
            tokio::time::sleep_until(until.into()).await;
        }
        let mut line = String::new();
        match lines.read_line(&mut line).await {
            // What a killed one was about to say is no line.
            Ok(_) if !line.ends_with('\n') => break,
            Ok(_) => shared.heard().takes(&line),
            Err(error) => {
                shared
                    .heard()
                    .faults
                    .push(format!("what came is no text: {error}"));
                break;
            }
        }
        shared.state.send_modify(|state| state.messages += 1);
    }
    shared.state.send_modify(|state| state.over = true);
}
