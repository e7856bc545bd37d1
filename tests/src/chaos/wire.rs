//! A client that goes on reading whatever happens, and takes down what comes in its order.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::book::{Book, Call};
use super::ending::Client;
use super::weather::Weather;
use crate::{Reply, Room};

/// Nothing that a client waits for takes longer: a supervisor that is stopped is given up after ten seconds, survivors are
/// named after ten more.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The server is gone, or takes and says nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// A running server and its client.
pub(super) struct Wire {
    child: Child,
    stdin: Option<ChildStdin>,
    shared: Arc<Shared>,
    reader: JoinSet<()>,
    last_id: i64,
}

struct Shared {
    book: Mutex<Book>,
    state: watch::Sender<State>,
}

/// What the reader does; its changes are what the client waits for.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    answers: u64,
    /// It reads nothing before this.
    deaf: Option<Instant>,
    over: bool,
}

impl Wire {
    /// Starts a server in a room, and shakes hands.
    pub(super) async fn start(room: &Room, config: &str, weather: Weather) -> Result<Wire, Gone> {
        std::fs::write(room.home().join("config.toml"), config).map_err(|_| Gone)?;
        let log = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(room.home().join("stderr.log"));
        let mut command = weather.dsh(room);
        command
            .arg("mcp")
            .env("RUST_LOG", "info")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.map_err(|_| Gone)?);
        let mut child = command.spawn().map_err(|_| Gone)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or(Gone)?;
        let shared = Arc::new(Shared {
            book: Mutex::default(),
            state: watch::Sender::new(State::default()),
        });
        let mut reader = JoinSet::new();
        reader.spawn(read(stdout, Arc::clone(&shared)));
        let mut wire = Wire {
            child,
            stdin,
            shared,
            reader,
            last_id: 0,
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "chaos", "version": "1"}});
        // Its answer is no text, and waited for as one all the same.
        let id = wire
            .request("initialize", hello, Call::Look(String::new()))
            .await?;
        wire.answer(id).await?;
        wire.line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        Ok(wire)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// What the client was told so far.
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.shared.book()
    }

    /// Calls a tool, and does not wait for the answer.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value, call: Call) -> Result<i64, Gone> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}), call)
            .await
    }

    /// Asks for the resource of a task, and does not wait for it.
    pub(super) async fn look(&mut self, task: &str) -> Result<i64, Gone> {
        let uri = json!({"uri": format!("dsh://task/{task}")});
        self.request("resources/read", uri, Call::Look(task.to_owned()))
            .await
    }

    /// The last call that went out.
    pub(super) fn last_call(&self) -> i64 {
        self.last_id
    }

    /// Takes a call back.
    pub(super) async fn cancel(&mut self, id: i64) -> Result<(), Gone> {
        self.book().cancels(id);
        let params = json!({"requestId": id, "reason": "no longer wanted"});
        self.line(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
            .await
    }

    /// The answer to a call.
    pub(super) async fn answer(&self, id: i64) -> Result<Reply, Gone> {
        let mut state = self.shared.state.subscribe();
        let answered = async {
            loop {
                let over = state.borrow_and_update().over;
                if let Some(reply) = self.book().answers.remove(&id) {
                    return Ok(reply);
                }
                if over || state.changed().await.is_err() {
                    return Err(Gone);
                }
            }
        };
        match timeout(PATIENCE, answered).await {
            Ok(answer) => answer,
            Err(_) => {
                self.book()
                    .faults
                    .push(format!("no answer to call {id} within {PATIENCE:?}"));
                Err(Gone)
            }
        }
    }

    /// Reads nothing for so long.
    pub(super) fn be_deaf(&self, time: Duration) {
        let until = Instant::now() + time;
        self.shared.state.send_modify(|state| state.deaf = Some(until));
    }

    /// Waits for the end of the server, for so long, and reads all that it said.
    pub(super) async fn ended(&mut self, limit: Duration) -> Result<ExitStatus, String> {
        let end = async {
            let status = self.child.wait().await.map_err(|error| error.to_string())?;
            while self.reader.join_next().await.is_some() {}
            Ok(status)
        };
        let end = timeout(limit, end).await;
        end.unwrap_or_else(|_| Err(format!("the server did not end within {limit:?}")))
    }

    async fn request(&mut self, method: &str, params: Value, call: Call) -> Result<i64, Gone> {
        self.last_id += 1;
        let id = self.last_id;
        self.book().sends(id, call);
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await?;
        Ok(id)
    }

    async fn line(&mut self, message: &Value) -> Result<(), Gone> {
        let stdin = self.stdin.as_mut().ok_or(Gone)?;
        let line = format!("{message}\n");
        let sent = timeout(PATIENCE, stdin.write_all(line.as_bytes())).await;
        sent.map_err(|_| Gone)?.map_err(|_| Gone)
    }
}

impl Client for Wire {
    fn close_input(&mut self) {
        self.stdin = None;
    }

    async fn close_output(&mut self) {
        self.reader.shutdown().await;
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(stdout: ChildStdout, shared: Arc<Shared>) {
    let mut lines = BufReader::new(stdout).lines();
    loop {
        let deaf = shared.state.borrow().deaf;
        if let Some(until) = deaf {
            // sleep: that nobody reads for a while is what is tried.
            tokio::time::sleep_until(until.into()).await;
        }
        let line = match lines.next_line().await {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                shared
                    .book()
                    .faults
                    .push(format!("what came is no text: {error}"));
                break;
            }
        };
        match message(&line) {
            Ok(Some((id, reply))) => shared.book().answered(id, reply),
            Ok(None) => {}
            Err(fault) => shared.book().faults.push(fault),
        }
        shared.state.send_modify(|state| state.answers += 1);
    }
    shared.state.send_modify(|state| state.over = true);
}

/// An answer, or nothing that a client waits for.
fn message(line: &str) -> Result<Option<(i64, Reply)>, String> {
    let no_protocol = || format!("no protocol: {line:?}");
    let message: Value = serde_json::from_str(line).map_err(|_| no_protocol())?;
    if message["jsonrpc"] != "2.0" {
        return Err(no_protocol());
    }
    let Some(id) = message["id"].as_i64().filter(|_| message["method"].is_null()) else {
        return Ok(None);
    };
    let result = &message["result"];
    let reply = if result["content"].is_array() {
        Reply::from_result(result)
    } else {
        let text = result["contents"][0]["text"].as_str();
        Reply {
            texts: text.map(str::to_owned).into_iter().collect(),
            is_error: text.is_none(),
        }
    };
    Ok(Some((id, reply)))
}
