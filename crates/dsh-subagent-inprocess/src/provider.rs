//! From a request to a child at work.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::{AgentFactory, AgentHandle, ChildPlan};
use dsh_scope::{EffectHandle, Scope};
use dsh_session::{Message, MessageSource, Session, SessionHeader, SessionId};
use dsh_subagent::{
    Capabilities, ParentContext, Run, RunFault, RunParts, RunResult, StartFailure, StartRequest,
    SubagentProvider, SubagentRegistry, child_depth,
};
use dsh_tasks::TaskRegistry;
use dsh_tools::ToolRegistry;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::{InProcessConfig, InstallError, Origin};
use crate::structured::Structured;
use crate::{filter, outcome, seed};

/// What a child is told when it is cancelled.
const CANCELLED: &str = "subagent run cancelled";

/// What the provider works with.
#[derive(Clone)]
pub struct Deps {
    /// Where it is offered.
    pub subagents: SubagentRegistry,
    /// Who makes the children.
    pub agents: Arc<dyn AgentFactory>,
    /// What the children can call.
    pub tools: ToolRegistry,
    /// What the children leave running.
    pub tasks: TaskRegistry,
}

/// Offers a provider for as long as `scope`. Runs that it has started by then go on.
///
/// # Errors
///
/// An [`InstallError`].
pub fn install(
    scope: &Scope,
    deps: Deps,
    origin: Origin,
    config: &InProcessConfig,
) -> Result<EffectHandle, InstallError> {
    config.validate()?;
    let name = config.provider_name(origin);
    let subagents = deps.subagents.clone();
    let provider = InProcess { deps, origin };
    Ok(subagents.register(scope, name, Arc::new(provider))?)
}

struct InProcess {
    deps: Deps,
    origin: Origin,
}

#[async_trait]
impl SubagentProvider for InProcess {
    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn context(&self) -> ParentContext {
        match self.origin {
            Origin::Spawn => ParentContext::Fresh,
            Origin::Fork => ParentContext::CompletedTurns,
        }
    }

    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        let refused = || StartFailure::new("subagent request was aborted before child publication");
        if request.token.is_cancelled() {
            return Err(refused());
        }
        let session = self.session(&request)?;
        let structured = request.output_schema.clone().map(Structured::new);
        let plan = self.plan(&request, session.clone(), structured.clone());
        let handle = self
            .deps
            .agents
            .create_child(plan)
            .await
            .map_err(|error| StartFailure::new(error.to_string()).caused_by(error))?;
        let child = Child {
            tasks: self.deps.tasks.clone(),
            handle: Arc::new(handle),
            session,
            structured,
        };
        if request.token.is_cancelled() {
            return Err(match child.release().await {
                Ok(()) => refused(),
                Err(fault) => refused().with_rollback(fault.to_string()),
            });
        }
        let message = Message {
            content: request.prompt,
            source: MessageSource::User,
        };
        let released = child.clone();
        Run::publish(RunParts {
            id: child.session.id().to_string(),
            local: Some(Arc::clone(child.handle.agent())),
            parent: request.parent,
            token: request.token.clone(),
            work: async move { child.work(message, request.token).await },
            release: async move { released.release().await },
        })
        .await
    }
}

impl InProcess {
    /// The conversation of a child: in its parent's directory, one deeper, with what it begins with.
    fn session(&self, request: &StartRequest) -> Result<Session, StartFailure> {
        let parent = request.parent.session();
        let depth = child_depth(&request.parent, request.max_depth)
            .map_err(|error| StartFailure::new(error.to_string()).caused_by(error))?;
        let seed = match self.origin {
            Origin::Spawn => Vec::new(),
            Origin::Fork => seed::completed_turns(&parent.events()),
        };
        let id = SessionId::new(Uuid::new_v4().to_string());
        let session = Session::with_header(SessionHeader {
            parent_session: Some(parent.id().clone()),
            delegation_depth: depth,
            seed_length: seed.len() as u64,
            preset: parent.header().preset.clone(),
            ..SessionHeader::new(id, parent.cwd().map(ToOwned::to_owned))
        });
        for event in seed {
            // What one log took, in the same order.
            session.append(event).map_err(|error| {
                StartFailure::new("the conversation could not be forked").caused_by(error)
            })?;
        }
        Ok(session)
    }

    fn plan(&self, request: &StartRequest, session: Session, structured: Option<Structured>) -> ChildPlan {
        let mut plan = ChildPlan::new(Arc::clone(&request.parent), session);
        plan.model = request.model.clone().unwrap_or_default();
        plan.persona.clone_from(&request.persona);
        plan.instructions
            .extend(structured.as_ref().map(Structured::instruction));
        let (tools, filter) = (self.deps.tools.clone(), request.tool_filter.clone());
        plan.setup = Some(Box::new(move |agent| {
            Box::pin(async move {
                if let Some(filter) = filter {
                    filter::apply(&tools, &agent, filter)?;
                }
                if let Some(structured) = structured {
                    structured.install(&tools, &agent)?;
                }
                Ok(())
            })
        }));
        plan
    }
}

/// A child that was published.
#[derive(Clone)]
struct Child {
    tasks: TaskRegistry,
    handle: Arc<AgentHandle>,
    session: Session,
    structured: Option<Structured>,
}

impl Child {
    /// Gives it its task, and waits until it has nothing more to do.
    async fn work(self, task: Message, token: CancellationToken) -> Result<RunResult, RunFault> {
        let agent = self.handle.agent();
        // One that is being disposed already has not heard of it, and says so in its log.
        if agent.follow_up(task).is_err() {
            return Ok(RunResult::aborted());
        }
        tokio::select! {
            biased;
            () = token.cancelled() => agent.cancel(CANCELLED),
            () = agent.when_idle() => {}
        }
        // A task that ends from now on opens no turn: nobody would hear what comes of it.
        agent.conclude();
        let own = self.session.events_from(self.session.header().seed_length);
        let result = outcome::of(&own, self.structured.as_ref(), token.is_cancelled());
        Ok(outcome::with_ended(result, agent, &self.tasks.list(Some(agent))))
    }

    async fn release(&self) -> Result<(), RunFault> {
        let disposed = self.handle.dispose().await;
        disposed.map_err(|error| RunFault::new(error.to_string()).caused_by(error))
    }
}
