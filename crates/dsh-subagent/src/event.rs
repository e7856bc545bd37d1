//! What observers are told.

use std::sync::Arc;

use dsh_agent::{BoxError, InstanceId};
use dsh_llm::ContentBlock;
use dsh_session::SessionId;

use crate::StopReason;

/// What observers are told.
#[derive(Debug, Clone)]
pub enum SubagentEvent {
    /// There is a provider of this name now. An observer that does not want it refuses its registration.
    ProviderAdded {
        /// Its name.
        name: String,
    },
    /// There is none of this name any more.
    ProviderRemoved {
        /// Its name.
        name: String,
    },
    /// A child was published. Always before its end.
    Started(RunInfo),
    /// The result of a run is there.
    Ended {
        /// Which run.
        run: RunInfo,
        /// Why it ended.
        stop: StopReason,
        /// What the child said in the end, if it said anything.
        last_assistant_message: Option<Vec<ContentBlock>>,
    },
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// Names the run alone, whatever ids its provider gives.
    pub run_id: String,
    /// The name of its provider.
    pub provider: String,
    /// The id of the child; see [`Run::id`](crate::Run::id).
    pub id: String,
    /// The child's session, if it is in this process.
    pub local: Option<SessionId>,
    /// The session of who delegated.
    pub parent: SessionId,
    /// Which agent that is, among all that had this session.
    pub parent_instance: InstanceId,
}

/// An observer. What it says of anything but a [new provider](SubagentEvent::ProviderAdded) is only logged, and a panic is
/// an error.
pub type Listener = Arc<dyn Fn(&SubagentEvent) -> Result<(), BoxError> + Send + Sync>;

impl SubagentEvent {
    /// The name of what happened.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ProviderAdded { .. } => "provider-added",
            Self::ProviderRemoved { .. } => "provider-removed",
            Self::Started(_) => "start",
            Self::Ended { .. } => "end",
        }
    }
}
