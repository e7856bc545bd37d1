//! Tasks as MCP resources: `dsh://task/<id>`, plain text, looked at without consuming anything.

use std::collections::HashMap;
use std::sync::Arc;

use dsh_agent::Agent;
use dsh_tasks::{AccessError, ReadError, TaskId, TaskRegistry, TaskSnapshot, TaskStatus};
use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, Resource, ResourceContents, ResourceTemplate};

use crate::message::shown;

/// What the address of every task begins with.
const PREFIX: &str = "dsh://task/";

/// The most bytes of output that one read shows: the end of it, where there is more.
const MAX_SHOWN: usize = 256 * 1024;

/// How many entries one page of the list has.
const PAGE: usize = 100;

/// The tasks of one agent, as resources.
#[derive(Clone)]
pub(crate) struct TaskView {
    tasks: TaskRegistry,
    agent: Arc<Agent>,
}

impl TaskView {
    pub(crate) fn new(tasks: TaskRegistry, agent: Arc<Agent>) -> Self {
        Self { tasks, agent }
    }

    /// One page of the tasks in the order of their start: the first, or the one that a cursor asks for. The cursor is
    /// the address of the last task of the page before, so tasks that come or go meanwhile move no entry.
    ///
    /// # Errors
    ///
    /// Invalid parameters when the cursor is no address of a task that this agent may see.
    pub(crate) fn list(&self, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
        let tasks = self.snapshots();
        let start = match cursor {
            None => 0,
            Some(cursor) => match tasks.iter().position(|task| uri_of(&task.id) == cursor) {
                Some(last) => last + 1,
                None => return Err(bad_cursor(cursor)),
            },
        };
        let rest = &tasks[start..];
        let page = &rest[..rest.len().min(PAGE)];
        let mut result = ListResourcesResult::with_all_items(page.iter().map(entry).collect());
        if page.len() < rest.len() {
            result.next_cursor = page.last().map(|task| uri_of(&task.id));
        }
        Ok(result)
    }

    /// How the addresses are made.
    pub(crate) fn template() -> ResourceTemplate {
        ResourceTemplate::new(format!("{PREFIX}{{id}}"), "task")
            .with_description("Output so far and status of a background task")
            .with_mime_type("text/plain")
    }

    /// What the task has put out, then its status line.
    ///
    /// # Errors
    ///
    /// Resource not found, naming the task, when the caller has none at that address.
    pub(crate) fn read(&self, uri: &str) -> Result<ResourceContents, ErrorData> {
        let id = self.find(uri)?;
        let caller = Some(&self.agent);
        let bytes = self
            .tasks
            .get(&id, caller)
            .map_err(|error| not_found(&error))?
            .bytes;
        let offset = bytes.saturating_sub(MAX_SHOWN as u64);
        let seen = self
            .tasks
            .observe(&id, caller, offset, MAX_SHOWN)
            .map_err(|error| match error {
                ReadError::Access(error) => not_found(&error),
                ReadError::Source(error) => ErrorData::internal_error(error, None),
            })?;
        let mut text = match offset {
            0 => String::new(),
            skipped => format!("[{skipped} bytes before this are not shown]\n"),
        };
        text.push_str(&seen.text);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&seen.snapshot.status_line());
        Ok(ResourceContents::text(text, uri))
    }

    /// The task at that address.
    ///
    /// # Errors
    ///
    /// Resource not found when it is no address of a task that this agent may see.
    pub(crate) fn find(&self, uri: &str) -> Result<TaskId, ErrorData> {
        let Some(id) = uri.strip_prefix(PREFIX) else {
            let uri = shown(uri);
            let reason = format!("no resource {uri}: addresses have the form {PREFIX}<id>");
            return Err(ErrorData::resource_not_found(reason, None));
        };
        let id = TaskId::from(id);
        self.tasks
            .get(&id, Some(&self.agent))
            .map_err(|error| not_found(&error))?;
        Ok(id)
    }

    pub(crate) fn snapshots(&self) -> Vec<TaskSnapshot> {
        self.tasks.list(Some(&self.agent))
    }
}

/// The address of a task.
pub(crate) fn uri_of(id: &TaskId) -> String {
    format!("{PREFIX}{id}")
}

/// What of the tasks a client has been told.
#[derive(Default)]
pub(crate) struct Known(HashMap<TaskId, Face>);

/// What has changed since.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Tasks were added or are gone.
    pub(crate) list: bool,
    /// These read differently now.
    pub(crate) updated: Vec<TaskId>,
}

/// The part of a task that a reader of its resource sees.
#[derive(PartialEq, Eq)]
struct Face {
    status: TaskStatus,
    detail: Option<String>,
    live_detail: Option<String>,
    bytes: u64,
}

impl Known {
    /// Takes in how things are and says what that changes.
    pub(crate) fn update(&mut self, now: &[TaskSnapshot]) -> Changes {
        let faces: HashMap<_, _> = now.iter().map(|task| (task.id.clone(), face(task))).collect();
        let updated = now
            .iter()
            .map(|task| &task.id)
            .filter(|id| self.0.get(id).is_some_and(|known| faces.get(id) != Some(known)))
            .cloned()
            .collect();
        let list = faces.len() != self.0.len() || faces.keys().any(|id| !self.0.contains_key(id));
        self.0 = faces;
        Changes { list, updated }
    }
}

fn entry(task: &TaskSnapshot) -> Resource {
    Resource::new(uri_of(&task.id), task.id.as_str())
        .with_title(task.label_line())
        .with_mime_type("text/plain")
}

fn face(task: &TaskSnapshot) -> Face {
    Face {
        status: task.status,
        detail: task.detail.clone(),
        live_detail: task.live_detail.clone(),
        bytes: task.bytes,
    }
}

fn not_found(error: &AccessError) -> ErrorData {
    ErrorData::resource_not_found(error.to_string(), None)
}

fn bad_cursor(cursor: &str) -> ErrorData {
    let cursor = shown(cursor);
    let reason = format!("no page begins at cursor {cursor}: ask for the first page, without a cursor");
    ErrorData::invalid_params(reason, None)
}
