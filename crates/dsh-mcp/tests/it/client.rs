//! A client that speaks raw lines, so that a test decides what is sent and read, and when.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dsh_agent::Agent;
use dsh_agent_core::{AgentCore, Config};
use dsh_mcp::{Served, serve};
use dsh_scope::Scope;
use dsh_testkit::Gate;
use dsh_tools::{Annotations, Delivery, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long a test waits for an answer before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server and the client's side of its connection.
pub(crate) struct Client {
    pub(crate) core: Arc<AgentCore>,
    pub(crate) stop: CancellationToken,
    pub(crate) notifications: Vec<Value>,
    input: Option<DuplexStream>,
    output: Option<Lines<BufReader<DuplexStream>>>,
    answers: HashMap<String, Value>,
    served: oneshot::Receiver<Served>,
    next_id: i64,
    received: usize,
    _scope: Scope,
}

impl Client {
    /// A server that nobody has said anything to.
    pub(crate) fn silent(core: Arc<AgentCore>, output_capacity: usize) -> Self {
        let (input, server_input) = tokio::io::duplex(1 << 16);
        let (server_output, output) = tokio::io::duplex(output_capacity);
        let stop = CancellationToken::new();
        let (done, served) = oneshot::channel();
        let scope = Scope::root("test client");
        let (server, stopped) = (core.clone(), stop.clone());
        scope
            .spawn("server", async move {
                let result = serve(&server, server_input, server_output, stopped).await;
                let _ = done.send(result.expect("the connection opens"));
            })
            .expect("the scope is open");
        Self {
            core,
            stop,
            notifications: Vec::new(),
            input: Some(input),
            output: Some(BufReader::new(output).lines()),
            answers: HashMap::new(),
            served,
            // Not the numbers that the server counts by itself.
            next_id: 100,
            received: 0,
            _scope: scope,
        }
    }

    /// A server whose handshake is done.
    pub(crate) async fn connected(core: Arc<AgentCore>) -> Self {
        Self::connected_with(core, 1 << 20).await
    }

    /// Like [`connected`](Self::connected), over a pipe to the client that holds so many bytes.
    pub(crate) async fn connected_with(core: Arc<AgentCore>, output_capacity: usize) -> Self {
        let mut client = Self::silent(core, output_capacity);
        let hello = client.initialize().await;
        assert_eq!(hello["result"]["serverInfo"]["name"], "dsh", "{hello}");
        client
            .send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        client
    }

    /// A default server whose handshake is done.
    pub(crate) async fn default() -> Self {
        Self::connected(core(Config::default())).await
    }

    pub(crate) async fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        });
        let id = self.request("initialize", params).await;
        self.answer(id).await
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.input
            .as_mut()
            .expect("the input is open")
            .write_all(bytes)
            .await
            .expect("the server reads");
    }

    /// Sends a request and returns its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Sends a tool call and returns its id.
    pub(crate) async fn start_call(&mut self, tool: &str, args: Value) -> i64 {
        self.request("tools/call", json!({"name": tool, "arguments": args}))
            .await
    }

    /// Calls a tool and returns the texts of its result.
    pub(crate) async fn call(&mut self, tool: &str, args: Value) -> Vec<String> {
        let id = self.start_call(tool, args).await;
        texts(&self.answer(id).await)
    }

    pub(crate) async fn bash(&mut self, command: &str) -> Vec<String> {
        self.call("bash", json!({"command": command, "description": "test"}))
            .await
    }

    /// Calls a tool until its result carries notices, and returns the texts of that result.
    pub(crate) async fn until_told(&mut self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let texts = self.bash("true").await;
            if texts.len() > 1 {
                return texts;
            }
            assert!(Instant::now() < deadline, "no notice came");
        }
    }

    /// Starts a background command and returns the id of its task.
    pub(crate) async fn background(&mut self, command: &str) -> String {
        let args = json!({"command": command, "description": "test", "run_in_background": true});
        let texts = self.call("bash", args).await;
        let id = texts[0]
            .rsplit(' ')
            .next()
            .expect("an acknowledgement")
            .trim()
            .to_owned();
        assert!(id.starts_with("bash-"), "{texts:?}");
        id
    }

    pub(crate) async fn cancel(&mut self, id: i64) {
        let params = json!({"requestId": id});
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
            .await;
    }

    /// The answer to a request of this client.
    pub(crate) async fn answer(&mut self, id: i64) -> Value {
        loop {
            if let Some(answer) = self.answers.remove(&id.to_string()) {
                return answer;
            }
            self.take_one().await;
        }
    }

    /// The next line of the server, whatever it is.
    pub(crate) async fn next(&mut self) -> Value {
        self.line().await.expect("the server writes on")
    }

    /// A notification of that method, old or new.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self
                .notifications
                .iter()
                .position(|notice| notice["method"] == method)
            {
                return self.notifications.remove(at);
            }
            self.take_one().await;
        }
    }

    /// Proves that everything before it was handled and written, and takes it in.
    pub(crate) async fn settle(&mut self) {
        let id = self.request("ping", json!({})).await;
        self.answer(id).await;
    }

    /// Whether an answer to the request has been taken in.
    pub(crate) fn has_answer(&self, id: i64) -> bool {
        self.answers.contains_key(&id.to_string())
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn close_output(&mut self) {
        self.output = None;
    }

    /// Everything the server still writes, until its end.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(message) = self.line().await {
            rest.push(message);
        }
        rest
    }

    /// How `serve` returned.
    pub(crate) async fn served(&mut self) -> Served {
        tokio::time::timeout(PATIENCE, &mut self.served)
            .await
            .expect("serve returns")
            .expect("serve ended")
    }

    /// Keeps the next line for whoever asks for it, with its place in the order of lines.
    async fn take_one(&mut self) {
        let mut message = self.next().await;
        self.received += 1;
        message["order"] = json!(self.received);
        match message.get("id") {
            Some(id) => {
                self.answers.insert(id.to_string(), message);
            }
            None => self.notifications.push(message),
        }
    }

    async fn line(&mut self) -> Option<Value> {
        let lines = self.output.as_mut().expect("the output is open");
        let line = tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .expect("the server answers");
        let line = line.expect("the output can be read")?;
        Some(serde_json::from_str(&line).expect("nothing but JSON is written"))
    }
}

pub(crate) fn core(config: Config) -> Arc<AgentCore> {
    Arc::new(AgentCore::assemble(config).expect("the configuration is valid"))
}

/// A command that waits until [`open_gate`] is called for the same directory.
pub(crate) fn gate(dir: &Path) -> String {
    format!("until [ -e {}/go ]; do sleep 0.02; done", dir.display())
}

/// Lets the command behind [`gate`] go on.
pub(crate) fn open_gate(dir: &Path) {
    std::fs::write(dir.join("go"), "").expect("the directory is there");
}

/// The texts of a tool result.
pub(crate) fn texts(answer: &Value) -> Vec<String> {
    let content = answer["result"]["content"]
        .as_array()
        .unwrap_or_else(|| panic!("no result: {answer}"));
    content
        .iter()
        .map(|block| block["text"].as_str().expect("a text").to_owned())
        .collect()
}

/// A tool whose calls end when a gate opens, and which knows what became of its deliveries.
#[derive(Clone)]
pub(crate) struct Probe {
    name: &'static str,
    text: String,
    pub(crate) gate: Gate,
    pub(crate) entered: Gate,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    delivered: AtomicUsize,
    abandoned: AtomicUsize,
    caller: Mutex<Option<Arc<Agent>>>,
}

/// Counts itself as abandoned unless it was delivered.
struct Fate(Option<Arc<Seen>>);

impl Probe {
    /// Offers a tool of that name whose result is `text`.
    pub(crate) fn offer(core: &AgentCore, name: &'static str, text: impl Into<String>) -> Self {
        let probe = Self {
            name,
            text: text.into(),
            gate: Gate::new(),
            entered: Gate::new(),
            seen: Arc::default(),
        };
        let context = core.context();
        context
            .tools
            .register(&context.scope, Arc::new(probe.clone()))
            .expect("the name is free");
        probe
    }

    pub(crate) fn delivered(&self) -> usize {
        self.seen.delivered.load(Ordering::SeqCst)
    }

    pub(crate) fn abandoned(&self) -> usize {
        self.seen.abandoned.load(Ordering::SeqCst)
    }

    /// The agent that called last.
    pub(crate) fn caller(&self) -> Arc<Agent> {
        self.seen
            .caller
            .lock()
            .expect("not poisoned")
            .clone()
            .expect("somebody called")
    }
}

#[async_trait::async_trait]
impl Tool for Probe {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.to_owned(),
            description: "A probe.".to_owned(),
            input_schema: json!({"type": "object", "properties": {}}),
            annotations: Annotations::default(),
        }
    }

    async fn call(&self, _: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        *self.seen.caller.lock().expect("not poisoned") = ctx.caller.clone();
        self.entered.open();
        tokio::select! {
            () = self.gate.opened() => {}
            () = ctx.token.cancelled() => {}
        }
        let mut fate = Fate(Some(self.seen.clone()));
        let delivery = Delivery::new(move || {
            fate.0
                .take()
                .expect("delivered once")
                .delivered
                .fetch_add(1, Ordering::SeqCst);
        });
        Ok(ToolOutput::text(self.text.clone()).delivers(delivery))
    }
}

impl Drop for Fate {
    fn drop(&mut self) {
        if let Some(seen) = self.0.take() {
            seen.abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}
