//! A model that is played by the test, tools that wait for it, and a room to put them into.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_agent::{Agent, AgentRegistry, Notice, NoticeKey};
use dsh_agent_loop::{AgentLoop, AgentPlan, Deps, LedAgent, LoopConfig, ModelChoice};
use dsh_llm::{
    CallId, Chunk, ContentBlock, FinishReason, ModelAdapter, ModelError, ModelMessage, ModelRegistry,
    ModelRequest, ModelStream, text_of,
};
use dsh_scope::Scope;
use dsh_session::{Enclosure, EventData, Message, MessageSource, Session, SessionId, TurnEnd, request_at};
use dsh_system_prompt::PromptRegistry;
use dsh_testkit::Gate;
use dsh_tools::{
    Annotations, Concurrency, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ToolRegistry,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One answer of the model.
pub(crate) enum Reply {
    Chunks(Vec<Chunk>),
    /// Says something and then nothing until it is dropped.
    Hang(&'static str),
    Fails(ModelError),
    /// Says something, then fails.
    Breaks(&'static str, ModelError),
    /// Says something when the gate is opened.
    Waits(Gate, &'static str),
    /// Takes the request and does not even begin to answer, whatever it is told.
    Deaf,
    Panics,
}

/// Plays its replies in order and remembers what it was asked.
#[derive(Default)]
pub(crate) struct Model {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Arc<ModelRequest>>>,
    asked: Notify,
}

struct Playing {
    gate: Option<Gate>,
    chunks: VecDeque<Chunk>,
    end: End,
}

enum End {
    Over,
    Hangs,
    Fails(ModelError),
}

#[async_trait]
impl ModelAdapter for Model {
    async fn send(
        &self,
        request: Arc<ModelRequest>,
        _: CancellationToken,
    ) -> Result<Box<dyn ModelStream>, ModelError> {
        self.requests.lock().unwrap().push(request);
        self.asked.notify_one();
        let reply = self.replies.lock().unwrap().pop_front();
        let mut gate = None;
        let (chunks, end) = match reply.expect("a reply is left") {
            Reply::Chunks(chunks) => (chunks, End::Over),
            Reply::Hang(text) => (vec![text_chunk(text)], End::Hangs),
            Reply::Fails(error) => return Err(error),
            Reply::Breaks(text, error) => (vec![text_chunk(text)], End::Fails(error)),
            Reply::Waits(until, text) => {
                gate = Some(until);
                (
                    vec![text_chunk(text), Chunk::Finish(FinishReason::Stop)],
                    End::Over,
                )
            }
            Reply::Deaf => std::future::pending().await,
            Reply::Panics => unreachable!("a bug of the adapter"),
        };
        Ok(Box::new(Playing {
            gate,
            chunks: chunks.into(),
            end,
        }))
    }
}

#[async_trait]
impl ModelStream for Playing {
    async fn next(&mut self) -> Result<Option<Chunk>, ModelError> {
        if let Some(gate) = &self.gate {
            gate.opened().await;
        }
        if let Some(chunk) = self.chunks.pop_front() {
            return Ok(Some(chunk));
        }
        match &self.end {
            End::Over => Ok(None),
            End::Hangs => std::future::pending().await,
            End::Fails(error) => Err(error.clone()),
        }
    }
}

pub(crate) fn text_chunk(text: &str) -> Chunk {
    Chunk::TextDelta {
        index: 0,
        text: text.to_owned(),
    }
}

pub(crate) fn says(text: &str) -> Reply {
    Reply::Chunks(vec![text_chunk(text), Chunk::Finish(FinishReason::Stop)])
}

/// Calls tools, each given as `(id, name, arguments)`.
pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Reply {
    let mut chunks: Vec<Chunk> = calls
        .iter()
        .enumerate()
        .map(|(index, (id, name, arguments))| Chunk::ToolCallDelta {
            index,
            id: Some(CallId::new(*id)),
            name: Some((*name).to_owned()),
            arguments: (*arguments).to_owned(),
        })
        .collect();
    chunks.push(Chunk::Finish(FinishReason::ToolCalls));
    Reply::Chunks(chunks)
}

/// Waits at a gate of its own, then says its name; or until it is cancelled.
pub(crate) struct Gated {
    name: &'static str,
    concurrency: Concurrency,
    pub(crate) entered: Gate,
    pub(crate) gate: Gate,
}

#[async_trait]
impl Tool for Gated {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            description: format!("waits, {}", self.name),
            annotations: Annotations {
                title: Some("for people".to_owned()),
                ..Annotations::default()
            },
            ..named(self.name)
        }
    }

    fn concurrency(&self, _: &Value) -> Concurrency {
        self.concurrency
    }

    async fn call(&self, _: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        self.entered.open();
        tokio::select! {
            () = self.gate.opened() => Ok(ToolOutput::text(self.name)),
            () = ctx.token.cancelled() => Err(ToolError::new("cancelled")),
        }
    }
}

/// A tool without arguments.
pub(crate) fn named(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object", "properties": {}}),
        annotations: Annotations::default(),
    }
}

pub(crate) struct Room {
    pub(crate) scope: Scope,
    pub(crate) tools: ToolRegistry,
    pub(crate) prompts: PromptRegistry,
    pub(crate) agents: AgentRegistry,
    pub(crate) model: Arc<Model>,
}

impl Room {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Room {
        let model = Model::default();
        model.replies.lock().unwrap().extend(replies);
        Room {
            scope: Scope::root("test"),
            tools: ToolRegistry::new(),
            prompts: PromptRegistry::new(),
            agents: AgentRegistry::new(),
            model: Arc::new(model),
        }
    }

    pub(crate) fn tool(&self, name: &'static str, concurrency: Concurrency) -> Arc<Gated> {
        let tool = Arc::new(Gated {
            name,
            concurrency,
            entered: Gate::new(),
            gate: Gate::new(),
        });
        self.tools.register(&self.scope, tool.clone()).unwrap();
        tool
    }

    /// A tool that waits for nothing.
    pub(crate) fn quick(&self, name: &'static str) {
        self.tool(name, Concurrency::Exclusive).gate.open();
    }

    pub(crate) async fn agent(&self) -> LedAgent {
        self.agent_with(LoopConfig::default()).await
    }

    pub(crate) async fn agent_with(&self, config: LoopConfig) -> LedAgent {
        self.agent_of(Session::new(SessionId::new("s-1"), None), config)
            .await
    }

    pub(crate) async fn agent_of(&self, session: Session, config: LoopConfig) -> LedAgent {
        self.agent_loop(config).create(self.plan(session)).await.unwrap()
    }

    pub(crate) fn agent_loop(&self, config: LoopConfig) -> AgentLoop {
        let mut models = ModelRegistry::new();
        models.register("played", self.model.clone()).unwrap();
        let deps = Deps {
            agents: self.agents.clone(),
            tools: self.tools.clone(),
            prompts: self.prompts.clone(),
            models,
        };
        AgentLoop::new(deps, config)
    }

    pub(crate) fn plan(&self, session: Session) -> AgentPlan {
        AgentPlan::new(session, ModelChoice::new("played", "m-1"), self.scope.clone())
    }

    /// Waits until the model is asked (once more).
    pub(crate) async fn model_is_asked(&self) {
        self.model.asked.notified().await;
    }

    /// What the model was asked, request by request: the texts of the messages.
    pub(crate) fn asked(&self) -> Vec<Vec<String>> {
        let requests = self.model.requests.lock().unwrap();
        requests.iter().map(|request| texts(&request.messages)).collect()
    }

    /// The tools that the model was offered in a request.
    pub(crate) fn offered(&self, request: usize) -> Vec<String> {
        let requests = self.model.requests.lock().unwrap();
        let tools = &requests[request].header.tools;
        tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// Every request that was made is what the log says it was, and the log is balanced.
    pub(crate) fn check_requests(&self, agent: &Agent) {
        let events = agent.session().events();
        let rebuilt: Vec<ModelRequest> = events
            .iter()
            .filter(|event| matches!(event.data, EventData::StepStart { .. }))
            .filter_map(|event| request_at(&events, event.seq))
            .collect();
        let requests = self.model.requests.lock().unwrap();
        assert_eq!(rebuilt.len(), requests.len());
        let mut enclosure = Enclosure::default();
        for event in &events {
            enclosure.admit(&event.data).unwrap();
        }
        assert_eq!(enclosure.closers(TurnEnd::Interrupted), [], "something is open");
        for (rebuilt, request) in rebuilt.iter().zip(requests.iter()) {
            assert_eq!(rebuilt, request.as_ref());
        }
    }
}

pub(crate) fn texts(messages: &[ModelMessage]) -> Vec<String> {
    let text = |message: &ModelMessage| match message {
        ModelMessage::User { content } => text_of(content),
        ModelMessage::Assistant { content } => {
            let blocks = content.iter().map(|block| match block.as_tool_call() {
                Some(call) => format!("<{}>", call.name),
                None => block.as_text().unwrap_or("~").to_owned(),
            });
            blocks.collect()
        }
        ModelMessage::ToolResult { call_id, content, .. } => format!("{call_id}={}", text_of(content)),
    };
    messages.iter().map(text).collect()
}

/// The log, one word per event.
pub(crate) fn story(agent: &Agent) -> Vec<String> {
    let word = |data: &EventData| match data {
        EventData::TurnStart { turn, .. } => format!("turn {turn}"),
        EventData::TurnEnd { reason, .. } => {
            let reason = serde_json::to_value(reason).unwrap();
            format!("end {}", reason["kind"].as_str().unwrap())
        }
        EventData::StepStart { step, .. } => format!("step {step}"),
        EventData::StepEnd { .. } => "/step".to_owned(),
        EventData::RequestHeader { reason, .. } => format!("header {reason:?}").to_lowercase(),
        EventData::ModelChoice { model, .. } => format!("model {model}"),
        EventData::UserMessage(message) => format!("user {}", text_of(&message.content)),
        EventData::AssistantMessage { interrupted, .. } if *interrupted => "interrupted".to_owned(),
        EventData::AssistantMessage { .. } => "assistant".to_owned(),
        EventData::ToolCall { call_id, .. } => format!("call {call_id}"),
        EventData::ToolResult { call_id, .. } => format!("result {call_id}"),
    };
    agent
        .session()
        .events()
        .iter()
        .map(|event| word(&event.data))
        .collect()
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn inject(agent: &Agent, text: &str) {
    let source = MessageSource::Plugin {
        plugin: "test".to_owned(),
        form: "notice".to_owned(),
        summary: text.to_owned(),
        subjects: Vec::new(),
    };
    agent.inbox().inject(Notice {
        key: NoticeKey::new(text),
        message: Message {
            content: vec![ContentBlock::text(text)],
            source,
        },
    });
}

/// Says something and waits until the agent rests.
pub(crate) async fn ask(agent: &LedAgent, text: &str) {
    agent.agent().follow_up(user(text)).unwrap();
    agent.agent().when_idle().await;
}
