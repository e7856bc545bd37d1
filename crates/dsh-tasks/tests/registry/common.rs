//! A harness around one registry, and producers that end when the test says so.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use dsh_agent::{Agent, AgentHandle, AgentRegistry, AgentSpec};
use dsh_output::{OutputConfig, OutputLog, Rendering, Stream};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_tasks::{
    CancelRequest, Deps, Outcome, Serves, StartError, StartSpec, TaskDone, TaskId, TaskRegistry,
    TaskSnapshot, TasksConfig, Work,
};
use tokio::sync::watch;

/// A registry with agents and, unless a test wants to attach its own, one surface for everyone.
pub(crate) struct Rig {
    pub(crate) root: Scope,
    pub(crate) agents: AgentRegistry,
    pub(crate) tasks: TaskRegistry,
}

/// A producer whose `done` is settled by the test. Clones are the same producer.
#[derive(Clone)]
pub(crate) struct Producer {
    settled: watch::Sender<Option<Outcome>>,
    log: Option<OutputLog>,
    on_cancel: OnCancel,
    cancels: Arc<Mutex<Vec<CancelRequest>>>,
    runs: Arc<AtomicUsize>,
}

/// What its cancel hook does.
#[derive(Clone)]
pub(crate) enum OnCancel {
    /// It returns and ends nothing.
    Nothing,
    /// It ends the work as killed.
    Settle,
    /// It fails with this text.
    Throw(&'static str),
    /// It calls this.
    Call(Arc<dyn Fn(&Producer) + Send + Sync>),
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(TasksConfig::default())
    }

    pub(crate) fn with(config: TasksConfig) -> Self {
        let rig = Self::bare(config);
        rig.tasks
            .attach_surface(&rig.root, "test", Serves::Everyone)
            .unwrap();
        rig
    }

    /// Without a surface.
    pub(crate) fn bare(config: TasksConfig) -> Self {
        let root = Scope::root("test");
        let agents = AgentRegistry::new();
        let deps = Deps {
            agents: Some(agents.clone()),
        };
        let tasks = TaskRegistry::install(&root, deps, config).unwrap();
        Self { root, agents, tasks }
    }

    pub(crate) fn agent(&self, id: &str) -> AgentHandle {
        self.agent_within(id, &self.root)
    }

    pub(crate) fn agent_within(&self, id: &str, scope: &Scope) -> AgentHandle {
        let spec = AgentSpec {
            id: SessionId::new(id),
            cwd: None,
            within: scope.clone(),
        };
        self.agents.create(spec).unwrap()
    }

    pub(crate) fn start(&self, producer: &Producer, owner: Option<&Arc<Agent>>) -> TaskId {
        self.try_start(producer, owner).unwrap()
    }

    pub(crate) fn try_start(
        &self,
        producer: &Producer,
        owner: Option<&Arc<Agent>>,
    ) -> Result<TaskId, StartError> {
        self.tasks.start(owned(producer.spec("bash", "pnpm test"), owner))
    }

    /// Everything the done listeners of this registry are told from now on.
    pub(crate) fn ends(&self) -> Ends {
        let ends = Ends::default();
        let seen = ends.clone();
        let listen = move |done: TaskDone| -> dsh_tasks::BoxFuture<_> {
            seen.0.lock().unwrap().push(done);
            Box::pin(async { Ok(()) })
        };
        self.tasks.on_done(&self.root, Serves::Everyone, listen).unwrap();
        ends
    }

    /// The owners the change feed names from now on; an unowned change is `-`.
    pub(crate) fn changes(&self, scope: &Scope) -> Changes {
        let changes = Changes::default();
        let seen = changes.clone();
        let observe = move |owner: Option<&SessionId>| {
            let owner = owner.map_or("-".to_owned(), SessionId::to_string);
            seen.0.lock().unwrap().push(owner);
        };
        self.tasks.on_change(scope, observe).unwrap();
        changes
    }

    pub(crate) fn status(&self, id: &TaskId, owner: Option<&Arc<Agent>>) -> TaskSnapshot {
        self.tasks.get(id, owner).unwrap()
    }

    pub(crate) fn ids(&self, caller: Option<&Arc<Agent>>) -> Vec<String> {
        self.tasks
            .list(caller)
            .iter()
            .map(|task| task.id.to_string())
            .collect()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Ends(Arc<Mutex<Vec<TaskDone>>>);

#[derive(Clone, Default)]
pub(crate) struct Changes(Arc<Mutex<Vec<String>>>);

impl Ends {
    pub(crate) fn all(&self) -> Vec<TaskDone> {
        self.0.lock().unwrap().clone()
    }

    /// Ids and whether their end was reported, in order.
    pub(crate) fn reported(&self) -> Vec<(String, bool)> {
        let seen = self.all();
        seen.iter()
            .map(|done| (done.snapshot.id.to_string(), done.snapshot.reported))
            .collect()
    }
}

impl Changes {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Producer {
    /// A final-output kind.
    pub(crate) fn new() -> Self {
        Self {
            settled: watch::Sender::new(None),
            log: None,
            on_cancel: OnCancel::Nothing,
            cancels: Arc::default(),
            runs: Arc::default(),
        }
    }

    /// A stream kind.
    pub(crate) fn stream() -> Self {
        Self {
            log: Some(OutputLog::new(OutputConfig::default())),
            ..Self::new()
        }
    }

    pub(crate) fn on_cancel(mut self, what: OnCancel) -> Self {
        self.on_cancel = what;
        self
    }

    pub(crate) fn spec(&self, kind: &str, label: &str) -> StartSpec {
        let producer = self.clone();
        StartSpec::new(kind, label, move || Ok(producer.work()))
    }

    pub(crate) fn work(&self) -> Work {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let mut settled = self.settled.subscribe();
        let done = async move {
            let outcome = settled.wait_for(Option::is_some).await.unwrap().clone();
            outcome.unwrap()
        };
        let producer = self.clone();
        let work = Work::new(done, move |request| {
            producer.cancels.lock().unwrap().push(request.clone());
            match &producer.on_cancel {
                OnCancel::Nothing => Ok(()),
                OnCancel::Settle => {
                    producer.settle(Outcome::killed());
                    Ok(())
                }
                OnCancel::Throw(text) => Err((*text).into()),
                OnCancel::Call(hook) => {
                    hook(&producer);
                    Ok(())
                }
            }
        });
        match &self.log {
            Some(log) => work.output(Arc::new(log.reader(Rendering::Sections))),
            None => work,
        }
    }

    pub(crate) fn settle(&self, outcome: Outcome) {
        self.settled.send_replace(Some(outcome));
    }

    pub(crate) fn write(&self, text: &str) {
        self.log.as_ref().unwrap().append(Stream::Stdout, text.as_bytes());
    }

    /// The reasons its cancel hook was given.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let cancels = self.cancels.lock().unwrap();
        cancels
            .iter()
            .map(|request| request.reason.clone().unwrap_or_default())
            .collect()
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

pub(crate) fn owned(spec: StartSpec, owner: Option<&Arc<Agent>>) -> StartSpec {
    match owner {
        Some(owner) => spec.owned_by(owner.clone()),
        None => spec,
    }
}

pub(crate) fn limit(limit: u64) -> TasksConfig {
    TasksConfig {
        max_concurrent_tasks_per_owner: limit.try_into().unwrap(),
        ..TasksConfig::default()
    }
}

/// Lets everything that can run now run.
pub(crate) async fn settled() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

/// Whether a future is not done when everything else has come to rest.
pub(crate) async fn is_pending(future: std::pin::Pin<&mut impl Future>) -> bool {
    tokio::select! {
        biased;
        _ = future => false,
        () = settled() => true,
    }
}

/// Whether the parts of a snapshot agree with each other and with whose it should be.
pub(crate) fn coherent(task: &TaskSnapshot, owner: Option<&SessionId>) -> Result<(), &'static str> {
    let number = task.id.as_str().strip_prefix(&format!("{}-", task.kind));
    let number: Option<u64> = number.and_then(|number| number.parse().ok());
    if number.is_none_or(|number| number == 0) {
        return Err("the id is not of its kind");
    }
    if task.label.is_empty() {
        return Err("no label");
    }
    match (task.status.is_terminal(), task.finished_at) {
        (true, None) => return Err("ended without a time"),
        (false, Some(_)) => return Err("live with the time of an end"),
        (_, Some(finished)) if finished < task.started_at => return Err("ended before it began"),
        _ => {}
    }
    if task.owner.as_ref() != owner {
        return Err("another owner");
    }
    Ok(())
}
