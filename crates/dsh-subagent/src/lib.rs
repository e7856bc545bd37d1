//! The subagent seam: providers, their registry, runs.
//!
//! A [`SubagentProvider`] is one way to run a child task: an agent in this process, or a product. A [`SubagentRegistry`]
//! knows them by name. Whoever delegates [starts](SubagentRegistry::start) a child by the name of a provider, and has a
//! [`Run`]: what came of it, and the duty to release it.
//!
//! # What holds
//!
//! - **A result for every outcome.** [`Run::result`] says how the child fared; only
//!   [`StopReason::Completed`] is a success.
//! - **Disposed is gone.** [`Run::dispose`] returns when everything of the child was seen gone. It happens once, and with the
//!   parent at the latest. Who may be dropped in the middle holds a [`RunGuard`].
//! - **One cancellation.** The token of a [`StartRequest`] ends the start and the run.
//! - **Published or nothing.** A start that failed has left nothing behind, or says so.
//! - **Refused before it begins.** What a provider cannot do is refused before it hears of the request.
//!
//! # Example
//!
//! A provider has two things to say about a child: what it does, to its result, and how everything of it is taken down.
//!
//! ```
//! use std::sync::Arc;
//!
//! use dsh_agent::{AgentRegistry, AgentSpec};
//! use dsh_scope::Scope;
//! use dsh_session::SessionId;
//! use dsh_subagent::{
//!     Run, RunParts, RunResult, StartFailure, StartRequest, StopReason, SubagentProvider, SubagentRegistry,
//! };
//! use tokio_util::sync::CancellationToken;
//!
//! /// Its children read the task backwards.
//! struct Backwards;
//!
//! #[async_trait::async_trait]
//! impl SubagentProvider for Backwards {
//!     async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
//!         let task: String = request.prompt.iter().filter_map(|block| block.as_text()).collect();
//!         if task.is_empty() {
//!             return Err(StartFailure::new("the task must not be empty"));
//!         }
//!         let token = request.token.clone();
//!         let work = async move {
//!             tokio::select! {
//!                 () = token.cancelled() => Ok(RunResult::aborted()),
//!                 () = tokio::task::yield_now() => Ok(RunResult::completed(task.chars().rev().collect::<String>())),
//!             }
//!         };
//!         // There is no process and no agent to be seen gone.
//!         let release = async { Ok(()) };
//!         Run::publish(RunParts::remote(request.parent, request.token, work, release)).await
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scope = Scope::root("my harness");
//! let subagents = SubagentRegistry::new();
//! subagents.register(&scope, "backwards", Arc::new(Backwards))?;
//!
//! let spec = AgentSpec { id: SessionId::new("parent"), cwd: None, within: scope.clone() };
//! let parent = AgentRegistry::new().create(spec)?;
//! let request = StartRequest::new("live", parent.agent().clone(), CancellationToken::new());
//! let run = subagents.start("backwards", request.clone()).await?;
//! let result = run.result().await?;
//! assert_eq!((result.text().as_str(), result.stop), ("evil", StopReason::Completed));
//! run.dispose().await?;
//!
//! let refused = subagents.start("backwards", StartRequest { max_depth: Some(3), ..request }).await;
//! assert_eq!(
//!     refused.unwrap_err().to_string(),
//!     r#"subagent provider "backwards" does not support the "depthLimit" capability"#
//! );
//! parent.dispose().await?;
//! scope.close().await?;
//! # Ok(())
//! # }
//! ```

mod provider;

mod depth;
mod request;
mod schema;

mod diagnostic;
mod result;
mod run;

mod event;
mod observers;
mod registry;
mod start;

mod error;

pub use depth::{DepthError, MAX_DEPTH, check_max_depth, child_depth};
pub use diagnostic::Diagnostic;
pub use error::{RegisterError, RunFault, StartError, StartFailure};
pub use event::{Listener, RunInfo, SubagentEvent};
pub use provider::{Capabilities, ParentContext, SubagentProvider};
pub use registry::{ProviderInfo, SubagentRegistry};
pub use request::{StartRequest, ToolFilter};
pub use result::{RunResult, StopReason};
pub use run::{Run, RunGuard, RunParts};
pub use schema::{SchemaError, check_output_schema};
