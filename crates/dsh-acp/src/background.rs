//! The tasks that an agent has in the background, for editors that want to show them.
//!
//! ACP 1 has no update for work that outlives its turn. Metadata of a session has one, `session_info_update`, and its
//! `_meta` is ours: every editor understands the update, and one that knows the key can show a list. A plan would be
//! shown by more of them, but it is the model's list of what it means to do.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{Meta, SessionInfoUpdate, SessionUpdate};
use dsh_agent::Agent;
use dsh_output::visible;
use dsh_scope::ScopeClosed;
use dsh_tasks::{TaskId, TaskRegistry, TaskSnapshot};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The key in `_meta`.
const KEY: &str = "dsh/tasks";

/// The live tasks of one agent, and whether the editor knows of them.
///
/// A task is shown once the log names it: after a crash no id that an editor has seen may be given again.
pub(crate) struct Background {
    tasks: TaskRegistry,
    agent: Arc<Agent>,
    changed: watch::Receiver<()>,
    /// Those that live and are named in the log.
    named: Vec<TaskId>,
    told: Vec<Value>,
}

impl Background {
    /// # Errors
    ///
    /// [`ScopeClosed`] when the agent is being disposed.
    pub(crate) fn new(tasks: TaskRegistry, agent: Arc<Agent>) -> Result<Self, ScopeClosed<()>> {
        let (tick, changed) = watch::channel(());
        let session = agent.id().clone();
        tasks.on_change(agent.scope(), move |owner| {
            if owner.is_none_or(|owner| *owner == session) {
                tick.send_replace(());
            }
        })?;
        Ok(Self {
            tasks,
            agent,
            changed,
            named: Vec::new(),
            told: Vec::new(),
        })
    }

    /// Waits for a change; for ever when there will be none.
    ///
    /// # Cancel safety
    ///
    /// Only waits.
    pub(crate) async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// A result is in the log, and kept.
    pub(crate) fn kept(&mut self, result: &str) {
        let named = |task: &TaskSnapshot| self.named.contains(&task.id) || task.id.is_named_in(result);
        let named = self.live().filter(named).map(|task| task.id).collect();
        self.named = named;
    }

    /// What the editor does not know yet, if anything.
    pub(crate) fn news(&mut self) -> Option<SessionUpdate> {
        let live = self.live().filter(|task| self.named.contains(&task.id));
        let live: Vec<Value> = live.map(|task| shown(&task)).collect();
        if live == self.told {
            return None;
        }
        self.told.clone_from(&live);
        let meta = Meta::from_iter([(KEY.to_owned(), Value::Array(live))]);
        Some(SessionUpdate::SessionInfoUpdate(
            SessionInfoUpdate::new().meta(meta),
        ))
    }

    fn live(&self) -> impl Iterator<Item = TaskSnapshot> {
        let tasks = self.tasks.list(Some(&self.agent)).into_iter();
        tasks.filter(|task| !task.status.is_terminal())
    }
}

fn shown(task: &TaskSnapshot) -> Value {
    json!({
        "id": task.id.as_str(),
        "kind": task.kind.as_str(),
        "label": visible(&task.label_line()),
        "status": task.status.as_str(),
        "startedAt": task.started_at,
    })
}
