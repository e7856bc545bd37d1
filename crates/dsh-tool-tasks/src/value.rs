//! A task as programs see it: typed, so that nobody has to parse the text for the model.

use dsh_session::SessionId;
use dsh_tasks::{Cause, Survivor, TaskSnapshot};
use serde::Serialize;
use serde_json::Value;

/// Everything about a task but whether its end was told. Whose it is is said where it is not the caller's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PublicTask<'a> {
    id: &'a str,
    kind: &'a str,
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<&'a str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    survivors: Vec<PublicSurvivor<'a>>,
    started_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<u64>,
    bytes: u64,
}

#[derive(Serialize)]
struct PublicSurvivor<'a> {
    pid: u32,
    command: &'a str,
}

pub(crate) fn public(snapshot: &TaskSnapshot, caller: Option<&SessionId>) -> Value {
    let owner = snapshot.owner.as_ref().filter(|owner| Some(*owner) != caller);
    let task = PublicTask {
        id: snapshot.id.as_str(),
        kind: snapshot.kind.as_str(),
        label: &snapshot.label,
        subagent: owner.map(SessionId::as_str),
        status: snapshot.status.as_str(),
        detail: snapshot.current_detail(),
        cause: snapshot.cause.as_ref().map(cause),
        reason: snapshot.reason.as_deref(),
        survivors: snapshot.survivors.iter().map(survivor).collect(),
        started_at: snapshot.started_at,
        finished_at: snapshot.finished_at,
        bytes: snapshot.bytes,
    };
    // Strings and numbers only: this cannot fail.
    serde_json::to_value(task).unwrap_or_default()
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Caller => "caller".to_owned(),
        Cause::Ancestor => "parent agent".to_owned(),
        Cause::OwnerDisposed => "owner disposed".to_owned(),
        Cause::ServiceDisposed => "service disposed".to_owned(),
        Cause::Deadline(ms) => format!("timed out after {ms}ms"),
    }
}

fn survivor(survivor: &Survivor) -> PublicSurvivor<'_> {
    PublicSurvivor {
        pid: survivor.pid,
        command: &survivor.command,
    }
}
