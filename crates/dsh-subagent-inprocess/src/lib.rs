//! Subagents in this process: agents that work for another agent.
//!
//! [`install`] offers one provider. A child of [`Origin::Spawn`] starts fresh; one of [`Origin::Fork`] begins with the turns
//! that its parent had completed. Both are composed as their parent is, work in its directory, live in its scope, and are
//! made by whatever [`AgentFactory`](dsh_agent::AgentFactory) the deployment has: this crate knows no loop and no model.
//!
//! # What holds
//!
//! - **The answer is the child's own.** It is what the child last said, never what stood in a log that it was seeded with.
//! - **Its tasks end with it.** What a child leaves running in the background is ended when the child is, and the answer says
//!   so.
//! - **A structured result is final.** It counts when the call that handed it over is in the child's log; no call runs and no
//!   step is taken after it.
//! - **Nobody answers for a child.** Calls that somebody would have to be asked about are denied.
//! - **Its conversation is kept as long as the child.** What is stored of it, if anything, is the factory's affair; its answer
//!   stands in the log of its parent.
//! - **An answer is the end.** Nothing opens another turn of a child that has answered.
//!
//! # Example
//!
//! A harness whose agents say but one thing:
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use dsh_agent::{AgentFactory, AgentHandle, AgentRegistry, AgentSpec, BoxError, ChildPlan, WakePolicy};
//! use dsh_llm::AssistantBlock;
//! use dsh_scope::Scope;
//! use dsh_session::{EventData, SessionId, TurnEnd};
//! use dsh_subagent::{StartRequest, SubagentRegistry};
//! use dsh_subagent_inprocess::{Deps, InProcessConfig, Origin, install};
//! use dsh_tasks::{TaskRegistry, TasksConfig};
//! use dsh_tools::ToolRegistry;
//! use tokio_util::sync::CancellationToken;
//!
//! struct Parrots(AgentRegistry);
//!
//! #[async_trait]
//! impl AgentFactory for Parrots {
//!     async fn create_child(&self, plan: ChildPlan) -> Result<AgentHandle, BoxError> {
//!         let handle = self.0.create_with(plan.session, plan.parent.scope().clone())?;
//!         let agent = handle.agent().clone();
//!         if let Some(setup) = plan.setup {
//!             setup(agent.clone()).await?;
//!         }
//!         let mut driver = agent.drive(WakePolicy::default())?;
//!         let driving = async move {
//!             while let Some((mut turn, opening)) = driver.next_turn().await {
//!                 let text = "Hello!".to_owned();
//!                 let said = vec![AssistantBlock::Text { text }];
//!                 let (number, step) = (agent.session().next_turn(), 1);
//!                 for event in [
//!                     EventData::TurnStart { turn: number, trigger: turn.trigger() },
//!                     EventData::UserMessage(opening.messages()[0].clone()),
//!                     EventData::StepStart { turn: number, step },
//!                     EventData::AssistantMessage { content: said, finish: None, usage: None, interrupted: false },
//!                     EventData::StepEnd { turn: number, step },
//!                 ] {
//!                     agent.session().append(event).expect("it keeps the rules of the log");
//!                 }
//!                 opening.commit();
//!                 turn.claim_or_close();
//!                 agent.session().wind_up(TurnEnd::Completed);
//!             }
//!         };
//!         handle.agent().scope().spawn("parrot", driving).map_err(|closed| closed.to_string())?;
//!         Ok(handle)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (scope, agents, subagents) = (Scope::root("my harness"), AgentRegistry::new(), SubagentRegistry::new());
//! let deps = Deps {
//!     subagents: subagents.clone(),
//!     agents: Arc::new(Parrots(agents.clone())),
//!     tools: ToolRegistry::new(),
//!     tasks: TaskRegistry::install(&scope, dsh_tasks::Deps::default(), TasksConfig::default())?,
//! };
//! install(&scope, deps, Origin::Spawn, &InProcessConfig::default())?;
//!
//! let parent = agents.create(AgentSpec { id: SessionId::new("s-1"), cwd: None, within: scope.clone() })?;
//! let request = StartRequest::new("Say hello.", parent.agent().clone(), CancellationToken::new());
//! let run = subagents.start("spawn", request).await?;
//! assert_eq!(run.result().await?.text(), "Hello!");
//! run.dispose().await?;
//!
//! scope.close().await?;
//! # Ok(())
//! # }
//! ```

mod config;

mod filter;
mod outcome;
mod provider;
mod seed;
mod structured;

pub use config::{InProcessConfig, InstallError, Origin};
pub use provider::{Deps, install};
