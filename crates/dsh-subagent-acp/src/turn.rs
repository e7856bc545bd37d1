//! The one turn of a run: what the agent says in it, and what it is allowed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema::{
    ContentBlock, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate,
};
use dsh_subagent_process::MAX_ANSWER_BYTES;

use crate::config::Permission;

/// The turn. It is open from the task to the end, and nothing counts before or after.
pub(crate) struct Turn {
    permission: Permission,
    state: Mutex<State>,
}

/// What was said in the turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// As much as is kept.
    pub(crate) text: String,
    /// It is not all that was said.
    pub(crate) cut: bool,
}

#[derive(Default)]
struct State {
    open: Option<SessionId>,
    said: Said,
    overrun: bool,
}

impl Turn {
    /// A turn that is not open yet.
    pub(crate) fn new(permission: Permission) -> Self {
        Self {
            permission,
            state: Mutex::default(),
        }
    }

    pub(crate) fn open(&self, session: SessionId) {
        self.state().open = Some(session);
    }

    /// Ends it, and returns the session if it was open.
    pub(crate) fn close(&self) -> Option<SessionId> {
        self.state().open.take()
    }

    /// The agent wrote a line that nobody can hold. Nothing more is heard of it.
    pub(crate) fn overrun(&self) {
        self.state().overrun = true;
    }

    pub(crate) fn is_overrun(&self) -> bool {
        self.state().overrun
    }

    pub(crate) fn said(&self) -> Said {
        self.state().said.clone()
    }

    /// Keeps the text of the answer.
    pub(crate) fn hear(&self, told: SessionNotification) {
        let SessionUpdate::AgentMessageChunk(chunk) = told.update else {
            return;
        };
        let ContentBlock::Text(chunk) = chunk.content else {
            return;
        };
        let mut state = self.state();
        if state.open.as_ref() != Some(&told.session_id) {
            return;
        }
        if state.said.cut || state.said.text.len() + chunk.text.len() > MAX_ANSWER_BYTES {
            state.said.cut = true;
        } else {
            state.said.text.push_str(&chunk.text);
        }
    }

    /// What is answered to an agent that wants to be allowed something.
    pub(crate) fn decide(&self, request: &RequestPermissionRequest) -> RequestPermissionOutcome {
        let is_open = self.state().open.as_ref() == Some(&request.session_id);
        let allowed = match self.permission {
            Permission::Allow if is_open => request.options.iter().find(|option| {
                matches!(
                    option.kind,
                    PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways
                )
            }),
            Permission::Allow | Permission::Reject => None,
        };
        match allowed {
            Some(option) => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
            }
            None => RequestPermissionOutcome::Cancelled,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
