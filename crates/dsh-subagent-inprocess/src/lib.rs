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

mod config;

mod filter;
mod outcome;
mod provider;
mod seed;
mod structured;

pub use config::{InProcessConfig, InstallError, Origin};
pub use provider::{Deps, install};
