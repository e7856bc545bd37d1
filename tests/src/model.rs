//! A model server on the loopback interface that says what a test wrote down.
//!
//! It is also the proxy of the product that talks to it, so what would leave this machine arrives here, too, and is
//! refused and recorded: [`ModelServer::strangers`].

mod http;
mod wire;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dsh_testkit::{Gate, eventually_within};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub use wire::Wire;

/// How long a product may take to ask: where many start at once, one may not have begun to speak after half a minute.
const DEADLINE: Duration = Duration::from_secs(60);

/// One reply of the model. Each request takes the next.
#[derive(Debug, Clone)]
pub enum Turn {
    /// It says this, and is done.
    Text(String),
    /// It calls the shell tool that the product offers, whatever that is called.
    Shell(String),
    /// It calls a tool with these arguments.
    Call(String, Value),
    /// These events, whatever they mean.
    Events(Vec<Value>),
    /// The request fails with this HTTP status and message.
    Error(u16, String),
    /// The request is sent on to this URL.
    Redirect(String),
    /// The answer begins, and goes on with the turn when the gate is opened; with an error it is cut.
    Held(Gate, Box<Turn>),
}

/// What a product sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The path with its query; `host:port` for a request to a proxy.
    pub path: String,
    /// The header fields; names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null if there is none, or none that is JSON.
    pub body: Value,
}

/// A running server. Dropping it closes every connection.
#[derive(Debug)]
pub struct ModelServer {
    port: u16,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    wire: Wire,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    turns: VecDeque<Turn>,
    requests: Vec<Request>,
    others: Vec<Request>,
}

impl ModelServer {
    /// Listens on a free port and will say `turns`, in order.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn start(wire: Wire, turns: impl IntoIterator<Item = Turn>) -> ModelServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared {
            wire,
            state: Mutex::new(State {
                turns: turns.into_iter().collect(),
                ..State::default()
            }),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, shared.clone()));
        ModelServer {
            port,
            shared,
            _accepting: accepting,
        }
    }

    /// Where it listens: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests to the model, as they came.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// Waits until the model was asked `count` times, and returns the last of them.
    ///
    /// # Panics
    ///
    /// When it is not within the deadline.
    pub async fn asked(&self, count: usize) -> Request {
        let what = format!("request {count} to the model");
        eventually_within(&what, DEADLINE, || self.requests().len() >= count).await;
        self.requests().swap_remove(count - 1)
    }

    /// The requests that were for somebody else, beyond this machine.
    pub fn strangers(&self) -> Vec<String> {
        let state = self.shared.state();
        let beyond = state.others.iter().filter(|other| !other.path.starts_with('/'));
        beyond.map(|other| other.path.clone()).collect()
    }
}

impl Turn {
    /// Says this, and is done.
    pub fn text(text: &str) -> Turn {
        Turn::Text(text.to_owned())
    }

    /// Runs this in a shell.
    pub fn shell(command: &str) -> Turn {
        Turn::Shell(command.to_owned())
    }

    /// This turn, once `gate` is opened.
    pub fn held(self, gate: &Gate) -> Turn {
        Turn::Held(gate.clone(), Box::new(self))
    }

    /// Never says anything.
    pub fn silence() -> Turn {
        Turn::Events(Vec::new()).held(&Gate::new())
    }
}

impl Request {
    /// The value of a header field; its name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(field, _)| field == name);
        field.map(|(_, value)| value.as_str())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and picks the answer; `None` for what the model is not asked.
    fn take(&self, request: &Request) -> Option<Turn> {
        let mut state = self.state();
        if !self.wire.is_model(request) {
            state.others.push(request.clone());
            return None;
        }
        state.requests.push(request.clone());
        let unscripted = || Turn::Error(500, "the test did not expect this request".to_owned());
        Some(state.turns.pop_front().unwrap_or_else(unscripted))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream, shared.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// A product that hangs up meanwhile is none of our business.
async fn answer(mut stream: TcpStream, shared: Arc<Shared>) {
    let Ok(request) = http::read(&mut stream).await else {
        return;
    };
    let Some(mut turn) = shared.take(&request) else {
        _ = http::refuse(&mut stream, 404, "not served here").await;
        return;
    };
    let mut begun = false;
    while let Turn::Held(gate, next) = turn {
        if !begun && http::begin_events(&mut stream).await.is_err() {
            return;
        }
        begun = true;
        gate.opened().await;
        turn = *next;
    }
    match &turn {
        Turn::Error(status, message) if !begun => {
            _ = http::refuse(&mut stream, *status, message).await;
            return;
        }
        // Cut where it stands.
        Turn::Error(..) => return,
        Turn::Redirect(url) => {
            _ = http::redirect(&mut stream, url).await;
            return;
        }
        _ => {}
    }
    let events = shared.wire.events(&turn, &request);
    if begun || http::begin_events(&mut stream).await.is_ok() {
        _ = http::finish_events(&mut stream, &events).await;
    }
}
