//! An editor that speaks raw lines, so that a test decides what is sent and read, and when.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dsh_acp::{Served, Settings, serve};
use dsh_agent_core::{AgentCore, Config, Parts};
use dsh_agent_loop::ModelChoice;
use dsh_llm::{ModelAdapter, ModelRegistry};
use dsh_llm_scripted::ScriptedAdapter;
use dsh_scope::Scope;
use dsh_testkit::Gate;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long a test waits for a line before it fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory, and the services over a script: what outlives a connection.
pub(crate) struct House {
    pub(crate) core: Arc<AgentCore>,
    directory: TempDir,
}

/// An agent and the editor's side of its connection.
pub(crate) struct Editor {
    pub(crate) stop: CancellationToken,
    pub(crate) session: String,
    /// Everything that was read and is not an answer, in order.
    pub(crate) seen: Vec<Value>,
    input: Option<DuplexStream>,
    output: Option<Lines<BufReader<DuplexStream>>>,
    answers: Vec<Value>,
    served: oneshot::Receiver<Served>,
    dropped: Gate,
    next_id: i64,
    cwd: PathBuf,
    _scope: Scope,
}

impl House {
    /// Services whose model gives these answers.
    pub(crate) fn new(turns: Value) -> Self {
        let script = json!({"turns": turns}).to_string();
        Self::with_model(Arc::new(
            ScriptedAdapter::from_json("test", &script).expect("a script"),
        ))
    }

    pub(crate) fn with_model(model: Arc<dyn ModelAdapter>) -> Self {
        let mut models = ModelRegistry::new();
        for provider in ["deepseek", "scripted"] {
            models
                .register(provider, model.clone())
                .expect("the name is free");
        }
        let parts = Parts {
            models,
            ..Parts::default()
        };
        Self {
            core: Arc::new(
                AgentCore::assemble_with(Config::default(), parts).expect("the configuration is valid"),
            ),
            directory: TempDir::new().expect("a directory"),
        }
    }

    /// A file in the directory that sessions work in.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn cwd(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn log_of(&self, session: &str) -> PathBuf {
        self.file("sessions").join(format!("{session}.jsonl"))
    }

    /// An editor that has said nothing.
    pub(crate) fn silent(&self, output_capacity: usize) -> Editor {
        let (input, agent_input) = tokio::io::duplex(1 << 16);
        let (agent_output, output) = tokio::io::duplex(output_capacity);
        let stop = CancellationToken::new();
        let (done, served) = oneshot::channel();
        let scope = Scope::root("test editor");
        let (core, stopped) = (self.core.clone(), stop.clone());
        let settings = Settings {
            sessions: self.file("sessions"),
            models: vec![ModelChoice::new("scripted", "other")],
        };
        let dropped = Gate::new();
        let drop_now = dropped.clone();
        scope
            .spawn("agent", async move {
                let serving = serve(&core, agent_input, agent_output, stopped, settings);
                tokio::select! {
                    biased;
                    () = drop_now.opened() => {}
                    served = serving => {
                        let _ = done.send(served.expect("the connection opens"));
                    }
                }
            })
            .expect("the scope is open");
        Editor {
            stop,
            session: String::new(),
            seen: Vec::new(),
            input: Some(input),
            output: Some(BufReader::new(output).lines()),
            answers: Vec::new(),
            served,
            dropped,
            next_id: 0,
            cwd: self.cwd().to_owned(),
            _scope: scope,
        }
    }

    /// An editor with these capabilities that has said hello.
    pub(crate) async fn editor_with(&self, capabilities: Value) -> Editor {
        let mut editor = self.silent(1 << 20);
        let hello = editor.initialize(capabilities).await;
        assert_eq!(hello["result"]["agentInfo"]["name"], "dsh", "{hello}");
        editor
    }

    pub(crate) async fn editor(&self) -> Editor {
        self.editor_with(json!({})).await
    }

    /// An editor with a new session.
    pub(crate) async fn session(&self) -> Editor {
        let mut editor = self.editor().await;
        editor.open().await;
        editor
    }
}

impl Editor {
    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        self.call(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
        )
        .await
    }

    /// Opens a session, which is the one that is meant from now on.
    pub(crate) async fn open(&mut self) -> Value {
        let params = json!({"cwd": self.cwd, "mcpServers": []});
        let answer = self.call("session/new", params).await;
        self.session = answer["result"]["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("no session: {answer}"))
            .to_owned();
        answer
    }

    pub(crate) async fn load(&mut self, session: &str) -> Value {
        self.session = session.to_owned();
        let params = json!({"sessionId": session, "cwd": self.cwd, "mcpServers": []});
        self.call("session/load", params).await
    }

    /// Loads a session that can be loaded.
    pub(crate) async fn loaded(&mut self, session: &str) -> Value {
        let answer = self.load(session).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).await.expect("the agent reads");
    }

    /// Sends a request and returns its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer(id).await
    }

    /// Sends a prompt and returns the id of the request.
    pub(crate) async fn begin(&mut self, text: &str) -> i64 {
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.request("session/prompt", params).await
    }

    /// Sends a prompt and waits for its end.
    pub(crate) async fn prompt(&mut self, text: &str) -> Value {
        let id = self.begin(text).await;
        self.answer(id).await
    }

    pub(crate) async fn cancel(&mut self) {
        let params = json!({"sessionId": self.session});
        self.send(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}))
            .await;
    }

    /// The answer to a request of this editor.
    pub(crate) async fn answer(&mut self, id: i64) -> Value {
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
                return self.answers.remove(at);
            }
            self.take_one().await;
        }
    }

    /// The answer that names no request.
    pub(crate) async fn nobodys_answer(&mut self) -> Value {
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"].is_null()) {
                return self.answers.remove(at);
            }
            self.take_one().await;
        }
    }

    /// The first update that is what is wanted, old or new.
    pub(crate) async fn update(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut looked = 0;
        loop {
            while let Some(message) = self.seen.get(looked) {
                looked += 1;
                let update = &message["params"]["update"];
                if wanted(update) {
                    return update.clone();
                }
            }
            self.take_one().await;
        }
    }

    /// The next question of the agent.
    pub(crate) async fn question(&mut self) -> Value {
        loop {
            if let Some(at) = self.seen.iter().position(|message| message.get("id").is_some()) {
                return self.seen.remove(at);
            }
            self.take_one().await;
        }
    }

    /// The updates of one sort so far, in order.
    pub(crate) fn updates(&self, sort: &str) -> Vec<Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates
            .filter(|update| update["sessionUpdate"] == sort)
            .cloned()
            .collect()
    }

    /// The text of all chunks of one sort so far.
    pub(crate) fn text(&self, sort: &str) -> String {
        let chunks = self.updates(sort);
        chunks
            .iter()
            .map(|chunk| chunk["content"]["text"].as_str().expect("a text"))
            .collect()
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn close_output(&mut self) {
        self.output = None;
    }

    /// Reads on until the agent writes no more.
    pub(crate) async fn rest(&mut self) {
        while self.take().await {}
    }

    /// How `serve` returned.
    pub(crate) async fn served(&mut self) -> Served {
        tokio::time::timeout(PATIENCE, &mut self.served)
            .await
            .expect("serve returns")
            .expect("serve ended")
    }

    /// Drops the future that serves.
    pub(crate) async fn drop_agent(&mut self) {
        self.dropped.open();
        let served = (&mut self.served).await;
        assert!(served.is_err(), "it did not end by itself: {served:?}");
    }

    /// The sessions that were opened, by what is still to be read.
    pub(crate) async fn sessions(&mut self) -> Vec<String> {
        self.rest().await;
        let ids = self
            .answers
            .iter()
            .filter_map(|answer| answer["result"]["sessionId"].as_str());
        ids.map(str::to_owned).collect()
    }

    /// Whether an answer to the request was read.
    pub(crate) fn has_answer(&self, id: i64) -> bool {
        self.answers.iter().any(|answer| answer["id"] == id)
    }

    async fn take_one(&mut self) {
        assert!(
            self.take().await,
            "the agent writes no more; seen: {:#?}",
            self.seen
        );
    }

    async fn take(&mut self) -> bool {
        let lines = self.output.as_mut().expect("the output is open");
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("nothing comes; seen: {:#?}", self.seen));
        let Some(line) = line.expect("the output can be read") else {
            return false;
        };
        let message: Value = serde_json::from_str(&line).expect("nothing but JSON is written");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        match message.get("method") {
            Some(_) => self.seen.push(message),
            None => self.answers.push(message),
        }
        true
    }
}

/// An answer of the model that calls one tool.
pub(crate) fn calls(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

/// An answer of the model that runs a command.
pub(crate) fn runs(command: &str) -> Value {
    calls("bash", json!({"command": command, "description": "test"}))
}

/// An answer of the model that starts a command in the background.
pub(crate) fn starts(command: &str) -> Value {
    calls(
        "bash",
        json!({"command": command, "description": "test", "run_in_background": true}),
    )
}
