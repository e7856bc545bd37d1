//! Who makes children here, and a child as it is driven by hand.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use dsh_agent::{
    Agent, AgentFactory, AgentHandle, AgentRegistry, BoxError, ChildPlan, Driver, Instruction, ModelRoute,
    Turn, WakePolicy,
};
use dsh_llm::{AssistantBlock, CallId, ToolCall};
use dsh_scope::Scope;
use dsh_session::{EventData, Message, Session, SessionHeader, SessionId, TurnEnd};
use dsh_subagent::{Run, StartError, StartRequest, SubagentRegistry};
use dsh_subagent_inprocess::{Deps, InProcessConfig, Origin, install};
use dsh_tasks::{Outcome, Serves, StartSpec, TaskRegistry, TasksConfig, Work};
use dsh_tools::{
    Annotations, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ToolRegistry, ToolResult,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A harness without a loop: its children wait for the test to drive them.
pub(crate) struct Nursery {
    pub(crate) scope: Scope,
    pub(crate) agents: AgentRegistry,
    pub(crate) subagents: SubagentRegistry,
    pub(crate) tools: ToolRegistry,
    pub(crate) tasks: TaskRegistry,
    factory: Arc<Factory>,
    parent: AgentHandle,
}

/// A child, and the seat of its driver. Without it a disposal does not wait for the test.
pub(crate) struct Child {
    pub(crate) agent: Arc<Agent>,
    /// What it was made of besides its session.
    pub(crate) model: ModelRoute,
    pub(crate) persona: Option<String>,
    pub(crate) instructions: Vec<Instruction>,
    driver: Driver,
    calls: usize,
}

type Hook = Box<dyn FnOnce(Arc<Agent>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

#[derive(Default)]
struct Factory {
    agents: AgentRegistry,
    born: Mutex<Vec<Child>>,
    /// Called when a child is complete, before anybody else has it. Nobody drives that one.
    before: Mutex<Option<Hook>>,
}

#[async_trait]
impl AgentFactory for Factory {
    async fn create_child(&self, plan: ChildPlan) -> Result<AgentHandle, BoxError> {
        let within = plan.parent.scope().clone();
        let handle = self.agents.create_with(plan.session, within)?;
        let agent = handle.agent().clone();
        let setup = match plan.setup {
            Some(setup) => setup(agent.clone()).await,
            None => Ok(()),
        };
        if let Err(error) = setup {
            handle.dispose().await?;
            return Err(error);
        }
        let before = lock(&self.before).take();
        if let Some(before) = before {
            before(agent).await;
            return Ok(handle);
        }
        let driver = agent.drive(WakePolicy::default())?;
        lock(&self.born).push(Child {
            agent,
            model: plan.model,
            persona: plan.persona,
            instructions: plan.instructions,
            driver,
            calls: 0,
        });
        Ok(handle)
    }
}

impl Nursery {
    /// A harness with `spawn`, `fork`, the tool `echo`, and somebody who delegates.
    pub(crate) fn new() -> Self {
        let parent = Session::with_header(SessionHeader {
            preset: Some("code".to_owned()),
            ..SessionHeader::new(SessionId::new("parent"), Some("/somewhere".into()))
        });
        Self::of(parent)
    }

    /// As [`new`](Self::new), for somebody with this session.
    pub(crate) fn of(parent: Session) -> Self {
        let (scope, factory) = (Scope::root("nursery"), Arc::new(Factory::default()));
        let agents = factory.agents.clone();
        let deps = dsh_tasks::Deps {
            agents: Some(agents.clone()),
        };
        let tasks = TaskRegistry::install(&scope, deps, TasksConfig::default()).expect("a registry");
        tasks
            .attach_surface(&scope, "test", Serves::Everyone)
            .expect("a surface");
        let tools = ToolRegistry::new();
        tools.register(&scope, Arc::new(Echo)).expect("the first tool");
        let parent = agents
            .create_with(parent, scope.clone())
            .expect("the first agent");
        let nursery = Self {
            scope,
            agents,
            subagents: SubagentRegistry::new(),
            tools,
            tasks,
            factory,
            parent,
        };
        for origin in [Origin::Spawn, Origin::Fork] {
            nursery.install(origin);
        }
        nursery
    }

    pub(crate) fn install(&self, origin: Origin) {
        let deps = self.deps();
        install(&self.scope, deps, origin, &InProcessConfig::default()).expect("a new name");
    }

    pub(crate) fn deps(&self) -> Deps {
        Deps {
            subagents: self.subagents.clone(),
            agents: self.factory.clone(),
            tools: self.tools.clone(),
            tasks: self.tasks.clone(),
        }
    }

    pub(crate) fn parent(&self) -> &Arc<Agent> {
        self.parent.agent()
    }

    pub(crate) fn request(&self) -> StartRequest {
        StartRequest::new("the task", self.parent().clone(), CancellationToken::new())
    }

    pub(crate) async fn start(&self, provider: &str, request: StartRequest) -> Result<Run, StartError> {
        self.subagents.start(provider, request).await
    }

    /// A fresh child, and its run.
    pub(crate) async fn spawn(&self) -> (Run, Child) {
        self.spawn_for(self.request()).await
    }

    pub(crate) async fn spawn_for(&self, request: StartRequest) -> (Run, Child) {
        let run = self.start("spawn", request).await.expect("it starts");
        (run, self.born())
    }

    pub(crate) async fn fork(&self) -> (Run, Child) {
        let run = self.start("fork", self.request()).await.expect("it starts");
        (run, self.born())
    }

    /// The child that was made last.
    pub(crate) fn born(&self) -> Child {
        lock(&self.factory.born).pop().expect("a child")
    }

    /// Does this when the next child is complete, before anybody has it. Nobody drives that child.
    pub(crate) fn before_publication<Done>(&self, hook: impl FnOnce(Arc<Agent>) -> Done + Send + 'static)
    where
        Done: Future<Output = ()> + Send + 'static,
    {
        *lock(&self.factory.before) = Some(Box::new(move |agent| Box::pin(hook(agent))));
    }

    /// No child was made.
    pub(crate) fn assert_childless(&self) {
        assert!(lock(&self.factory.born).is_empty());
    }

    /// Gives an agent a task that goes on until it is told to end.
    pub(crate) fn start_task(&self, owner: &Arc<Agent>, label: &str) {
        let stop = CancellationToken::new();
        let ends = stop.clone();
        let spec = StartSpec::new("sleep", label, move || {
            let done = async move {
                stop.cancelled().await;
                Outcome::killed()
            };
            Ok(Work::new(done, move |_: &_| {
                ends.cancel();
                Ok(())
            }))
        });
        self.tasks.start(spec.owned_by(owner.clone())).expect("it starts");
    }

    /// Ends everything.
    pub(crate) async fn close(self) {
        lock(&self.factory.born).clear();
        self.scope.close().await.expect("it closes");
    }
}

impl Child {
    /// A turn in which these things happen, and what it began with.
    pub(crate) async fn turn(&mut self, then: impl AsyncFnOnce(&mut Doing<'_>) -> TurnEnd) -> Vec<String> {
        let number = self.agent.session().next_turn();
        let (turn, opening) = self.driver.next_turn().await.expect("a turn");
        let trigger = turn.trigger();
        log(
            &self.agent,
            EventData::TurnStart {
                turn: number,
                trigger,
            },
        );
        let told = opening.messages().iter().map(|message| {
            log(&self.agent, EventData::UserMessage(message.clone()));
            dsh_llm::text_of(&message.content)
        });
        let told = told.collect();
        opening.commit();
        let mut doing = Doing {
            agent: self.agent.clone(),
            turn,
            place: (number, 0),
            calls: &mut self.calls,
        };
        let reason = then(&mut doing).await;
        if reason == TurnEnd::Completed {
            assert!(doing.turn.claim_or_close().is_none(), "there is something new");
        }
        log(&self.agent, EventData::TurnEnd { turn: number, reason });
        told
    }

    /// A turn in which it says this.
    pub(crate) async fn says(&mut self, text: &str) -> Vec<String> {
        self.turn(async |doing| {
            doing.say(text);
            TurnEnd::Completed
        })
        .await
    }
}

/// What a child does in a turn.
pub(crate) struct Doing<'a> {
    pub(crate) agent: Arc<Agent>,
    pub(crate) turn: Turn<'a>,
    /// The numbers of the turn and of its last step.
    place: (u64, u64),
    calls: &'a mut usize,
}

impl Doing<'_> {
    pub(crate) fn say(&mut self, text: &str) {
        let text = text.to_owned();
        self.begin(AssistantBlock::Text { text });
        self.end();
    }

    pub(crate) fn think(&mut self, text: &str) {
        let text = text.to_owned();
        self.begin(AssistantBlock::Reasoning { text });
        self.end();
    }

    /// Calls a tool, and logs the result as a loop does.
    pub(crate) async fn call(&mut self, tools: &ToolRegistry, name: &str, args: Value) -> String {
        *self.calls += 1;
        let id = format!("call-{}", self.calls);
        let result = self.execute(tools, &id, name, args).await;
        let text = dsh_llm::text_of(&result.content);
        self.commit(&id, result);
        text
    }

    /// Calls a tool, and keeps the result from the log.
    pub(crate) async fn execute(
        &mut self,
        tools: &ToolRegistry,
        id: &str,
        name: &str,
        args: Value,
    ) -> ToolResult {
        let arguments = args.to_string();
        let (id, name) = (CallId::new(id), name.to_owned());
        let call = AssistantBlock::ToolCall(ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        });
        self.begin(call);
        let called = EventData::ToolCall {
            call_id: id.clone(),
            name: name.clone(),
            arguments,
        };
        log(&self.agent, called);
        let context = ToolContext {
            caller: Some(self.agent.clone()),
            token: self.turn.token().clone(),
            call_id: id,
        };
        tools.execute(&name, args, context).await
    }

    pub(crate) fn commit(&self, id: &str, result: ToolResult) {
        let logged = EventData::ToolResult {
            call_id: CallId::new(id),
            content: result.content,
            is_error: result.is_error,
            error: None,
            value: None,
        };
        log(&self.agent, logged);
        result.deliveries.deliver_all();
        self.end();
    }

    /// The result gets lost: what the log has in its place is that it was.
    pub(crate) fn lose(&self, id: &str, result: ToolResult) {
        drop(result);
        self.commit(id, ToolError::new("lost").into());
    }

    fn begin(&mut self, block: AssistantBlock) {
        self.place.1 += 1;
        let (turn, step) = self.place;
        log(&self.agent, EventData::StepStart { turn, step });
        log(&self.agent, said(vec![block]));
    }

    fn end(&self) {
        let (turn, step) = self.place;
        log(&self.agent, EventData::StepEnd { turn, step });
    }
}

/// Says back what it is told.
struct Echo;

#[async_trait]
impl Tool for Echo {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "echo".to_owned(),
            description: "Echoes.".to_owned(),
            input_schema: json!({"type": "object"}),
            annotations: Annotations::default(),
        }
    }

    async fn call(&self, args: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(args.to_string()))
    }
}

/// A conversation that has had this turn.
pub(crate) fn talk(session: &Session, asked: &str, answered: &str) {
    let turn = session.next_turn();
    let events = [
        EventData::TurnStart {
            turn,
            trigger: dsh_session::TurnTrigger::Message,
        },
        EventData::UserMessage(Message::user(asked)),
        EventData::StepStart { turn, step: 1 },
        said(vec![AssistantBlock::Text {
            text: answered.to_owned(),
        }]),
        EventData::StepEnd { turn, step: 1 },
        EventData::TurnEnd {
            turn,
            reason: TurnEnd::Completed,
        },
    ];
    for event in events {
        session.append(event).expect("the log takes it");
    }
}

fn said(content: Vec<AssistantBlock>) -> EventData {
    EventData::AssistantMessage {
        content,
        finish: None,
        usage: None,
        interrupted: false,
    }
}

pub(crate) fn log(agent: &Agent, event: EventData) {
    agent.session().append(event).expect("the log takes it");
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
