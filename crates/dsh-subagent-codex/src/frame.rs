//! The frames of the app server's wire: lines of JSON-RPC. Ours carry the version, its own do not.

use serde_json::{Map, Value, json};

use crate::config::PermissionMode;

/// The ids of our requests, in their order.
pub(crate) const INITIALIZE: u64 = 1;
pub(crate) const THREAD_START: u64 = 2;
pub(crate) const TURN_START: u64 = 3;
const TURN_INTERRUPT: u64 = 4;

/// JSON-RPC's internal error: the answer to what is not served.
const INTERNAL_ERROR: i64 = -32603;

/// What the app server says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// It wants an answer.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// It tells something.
    Notification { method: String, params: Value },
    /// It answers a request of ours.
    Response { id: u64, result: Result<Value, Value> },
}

impl Frame {
    /// A line; nothing for one that is no frame.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let Ok(Value::Object(mut frame)) = serde_json::from_str(line) else {
            return None;
        };
        let id = frame.remove("id");
        let Some(method) = frame.remove("method") else {
            let result = match frame.remove("error") {
                Some(error) => Err(error),
                None => Ok(frame.remove("result")?),
            };
            return Some(Self::Response {
                id: id?.as_u64()?,
                result,
            });
        };
        let Value::String(method) = method else {
            return None;
        };
        let params = frame.remove("params").filter(Value::is_object);
        let params = params.unwrap_or_else(|| Value::Object(Map::new()));
        Some(match id {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification { method, params },
        })
    }
}

/// The first request: who we are.
pub(crate) fn initialize() -> Value {
    let client = json!({"name": "deepseek-harness", "title": "DeepSeek Harness", "version": "0.0.1"});
    let capabilities = json!({"experimentalApi": false, "requestAttestation": false});
    let params = json!({"clientInfo": client, "capabilities": capabilities});
    request(INITIALIZE, "initialize", params)
}

/// What follows its answer.
pub(crate) fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "initialized"})
}

/// A thread that Codex keeps nothing of.
pub(crate) fn thread_start(cwd: &str, mode: PermissionMode) -> Value {
    let mut params = json!({"cwd": cwd, "ephemeral": true});
    match mode {
        PermissionMode::Never => params["approvalPolicy"] = json!("never"),
        PermissionMode::ApproveForMe => {
            params["approvalPolicy"] = json!("on-request");
            params["approvalsReviewer"] = json!("auto_review");
            params["sandbox"] = json!("workspace-write");
        }
        PermissionMode::DangerouslyBypassApprovalsAndSandbox => {
            params["approvalPolicy"] = json!("never");
            params["sandbox"] = json!("danger-full-access");
        }
    }
    request(THREAD_START, "thread/start", params)
}

/// The one turn of the thread. Each text is an input of its own.
pub(crate) fn turn_start(thread: &str, task: &[String]) -> Value {
    let input: Vec<Value> = task
        .iter()
        .map(|text| json!({"type": "text", "text": text, "text_elements": []}))
        .collect();
    request(
        TURN_START,
        "turn/start",
        json!({"threadId": thread, "input": input}),
    )
}

/// The end of a turn before its time.
pub(crate) fn turn_interrupt(thread: &str, turn: &str) -> Value {
    request(
        TURN_INTERRUPT,
        "turn/interrupt",
        json!({"threadId": thread, "turnId": turn}),
    )
}

/// The answer to a request.
pub(crate) fn answer(id: Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The refusal of a request.
pub(crate) fn refusal(id: Value, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": INTERNAL_ERROR, "message": message}})
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}
