//! One registry, one agent that delegates, and providers that do what a test says.

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_agent::{AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_subagent::{
    Capabilities, Run, RunFault, RunParts, RunResult, StartError, StartFailure, StartRequest, SubagentEvent,
    SubagentProvider, SubagentRegistry,
};
use tokio_util::sync::CancellationToken;

pub(crate) struct Rig {
    pub(crate) scope: Scope,
    pub(crate) subagents: SubagentRegistry,
    pub(crate) parent: AgentHandle,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let scope = Scope::root("rig");
        let spec = AgentSpec {
            id: SessionId::new("parent"),
            cwd: None,
            within: scope.clone(),
        };
        let parent = AgentRegistry::new().create(spec).unwrap();
        Self {
            scope,
            subagents: SubagentRegistry::new(),
            parent,
        }
    }

    pub(crate) fn with(fake: &Fake) -> Self {
        let rig = Self::new();
        rig.provide("fake", fake);
        rig
    }

    pub(crate) fn provide(&self, name: &str, fake: &Fake) -> dsh_scope::EffectHandle {
        self.subagents
            .register(&self.scope, name, Arc::new(fake.clone()))
            .unwrap()
    }

    pub(crate) fn request(&self) -> StartRequest {
        StartRequest::new("task", Arc::clone(self.parent.agent()), CancellationToken::new())
    }

    pub(crate) async fn start(&self) -> Result<Run, StartError> {
        self.subagents.start("fake", self.request()).await
    }

    /// What an observer of `scope` hears from now on.
    pub(crate) fn hear(&self, scope: &Scope) -> Heard {
        let heard = Heard::default();
        let all = heard.clone();
        let listener = move |event: &SubagentEvent| {
            all.0.lock().unwrap().push(event.clone());
            Ok(())
        };
        self.subagents.observe(scope, Arc::new(listener)).unwrap();
        heard
    }
}

#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<SubagentEvent>>>);

impl Heard {
    pub(crate) fn all(&self) -> Vec<SubagentEvent> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.all().iter().map(SubagentEvent::name).collect()
    }
}

type Making = Pin<Box<dyn Future<Output = Result<Run, StartFailure>> + Send>>;

/// A provider that can do everything, or what it is told.
#[derive(Clone)]
pub(crate) struct Fake {
    can: Capabilities,
    make: Arc<dyn Fn(StartRequest) -> Making + Send + Sync>,
    starts: Arc<AtomicUsize>,
}

impl Fake {
    pub(crate) fn new<F>(make: impl Fn(StartRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Run, StartFailure>> + Send + 'static,
    {
        Self {
            can: Capabilities::ALL,
            make: Arc::new(move |request| Box::pin(make(request))),
            starts: Arc::default(),
        }
    }

    /// Its children say this at once.
    pub(crate) fn saying(text: &'static str) -> Self {
        Self::new(move |request| publish(request, async move { Ok(RunResult::completed(text)) }, gone()))
    }

    /// Its children work until they are cancelled.
    pub(crate) fn endless() -> Self {
        Self::new(|request| {
            let work = until_cancelled(request.token.clone());
            publish(request, work, gone())
        })
    }

    /// Its children do not look at their token.
    pub(crate) fn deaf() -> Self {
        Self::new(|request| publish(request, pending(), gone()))
    }

    pub(crate) fn that_can(mut self, can: Capabilities) -> Self {
        self.can = can;
        self
    }

    pub(crate) fn starts(&self) -> usize {
        self.starts.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl SubagentProvider for Fake {
    fn capabilities(&self) -> Capabilities {
        self.can
    }

    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        (self.make)(request).await
    }
}

pub(crate) async fn publish(
    request: StartRequest,
    work: impl Future<Output = Result<RunResult, RunFault>> + Send + 'static,
    release: impl Future<Output = Result<(), RunFault>> + Send + 'static,
) -> Result<Run, StartFailure> {
    Run::publish(RunParts {
        id: "child".to_owned(),
        local: None,
        parent: request.parent,
        token: request.token,
        work,
        release,
    })
    .await
}

pub(crate) async fn until_cancelled(token: CancellationToken) -> Result<RunResult, RunFault> {
    token.cancelled().await;
    Ok(RunResult::aborted())
}

/// A release without anything to do.
pub(crate) async fn gone() -> Result<(), RunFault> {
    Ok(())
}

/// A release that is counted.
pub(crate) async fn counted(releases: Arc<AtomicUsize>) -> Result<(), RunFault> {
    releases.fetch_add(1, Ordering::Relaxed);
    Ok(())
}
