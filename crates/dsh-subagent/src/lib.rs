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
//!   parent at the latest.
//! - **One cancellation.** The token of a [`StartRequest`] ends the start and the run.
//! - **Published or nothing.** A start that failed has left nothing behind, or says so.
//! - **Refused before it begins.** What a provider cannot do is refused before it hears of the request.

mod provider;

mod depth;
mod request;
mod schema;

mod diagnostic;
mod result;
mod run;

mod event;
mod registry;

mod error;

pub use depth::{DepthError, MAX_DEPTH, check_max_depth, child_depth};
pub use diagnostic::Diagnostic;
pub use error::{RegisterError, RunFault, StartError, StartFailure};
pub use event::{Listener, RunInfo, SubagentEvent};
pub use provider::{Capabilities, ParentContext, SubagentProvider};
pub use registry::{ProviderInfo, SubagentRegistry};
pub use request::{StartRequest, ToolFilter};
pub use result::{RunResult, StopReason};
pub use run::{Run, RunParts};
pub use schema::{SchemaError, check_output_schema};
