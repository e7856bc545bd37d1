//! What one line of the client is, by the rules of JSON-RPC.

use dsh_tools::head_within;
use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde_json::{Map, Value, json};

/// The line is not JSON.
const PARSE_ERROR: i32 = -32700;
/// The line is JSON, but no request.
const INVALID_REQUEST: i32 = -32600;

/// How many requests of one batch are refused by name; a line has room for many thousands.
const MAX_REFUSED: usize = 1000;

/// The most bytes that an error repeats of what a client sent.
const MAX_SHOWN: usize = 200;

/// What one line is.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A request to be answered.
    Request(Request),
    /// The client no longer wants the answer to this request.
    Cancel(RequestId),
    /// Nothing to do: a notification that changes nothing here, an answer to a question nobody asked, a blank line.
    Nothing,
    /// Not to be served; the answers that say so.
    Refused(Vec<Value>),
}

/// A request, as far as JSON-RPC looks into it.
#[derive(Debug)]
pub(crate) struct Request {
    /// The client's id.
    pub(crate) id: RequestId,
    /// The method.
    pub(crate) method: String,
    message: Map<String, Value>,
}

impl Request {
    /// Whether it names the protocol version it wants to be served by, as requests do that come without `initialize`.
    pub(crate) fn names_its_version(&self) -> bool {
        self.message
            .get("params")
            .and_then(|params| params.get("_meta"))
            .is_some_and(|meta| meta.get("io.modelcontextprotocol/protocolVersion").is_some())
    }

    /// The request for the SDK, under an id of ours.
    ///
    /// # Errors
    ///
    /// The answer to the client when the SDK cannot read it.
    pub(crate) fn under(mut self, id: i64) -> Result<ClientJsonRpcMessage, Value> {
        self.message.insert("id".to_owned(), id.into());
        serde_json::from_value(Value::Object(self.message)).map_err(|error| {
            let error = shown(&error.to_string());
            refusal(Some(&self.id), &format!("cannot read the request: {error}"))
        })
    }
}

/// Reads one line.
pub(crate) fn read(line: &[u8]) -> Incoming {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Incoming::Nothing;
    }
    match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => classify(message),
        Ok(Value::Array(batch)) => Incoming::Refused(refuse_batch(&batch)),
        Ok(_) => Incoming::Refused(vec![refusal(None, "a message must be a JSON object")]),
        Err(error) => Incoming::Refused(vec![error_answer(
            None,
            PARSE_ERROR,
            &format!("the line is not JSON: {error}"),
        )]),
    }
}

/// What a client sent, as an error repeats it: a line has room for megabytes of it.
pub(crate) fn shown(text: &str) -> String {
    let head = head_within(text, MAX_SHOWN);
    let more = if head.len() < text.len() { "…" } else { "" };
    format!("{head}{more}")
}

/// The answer that refuses a request.
pub(crate) fn refusal(id: Option<&RequestId>, reason: &str) -> Value {
    error_answer(id, INVALID_REQUEST, reason)
}

fn error_answer(id: Option<&RequestId>, code: i32, reason: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": reason}})
}

fn classify(message: Map<String, Value>) -> Incoming {
    let refuse = |id: Option<&RequestId>, reason: &str| Incoming::Refused(vec![refusal(id, reason)]);
    let id = match message.get("id") {
        None => None,
        Some(id) => match serde_json::from_value::<RequestId>(id.clone()) {
            Ok(id) => Some(id),
            Err(_) if message.contains_key("error") => None,
            Err(_) => return refuse(None, "\"id\" must be a string or an integer"),
        },
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse(id.as_ref(), "\"jsonrpc\" must be \"2.0\"");
    }
    let method = match message.get("method") {
        Some(Value::String(method)) => method.clone(),
        Some(_) => return refuse(id.as_ref(), "\"method\" must be a string"),
        // This server asks its client nothing.
        None if message.contains_key("result") || message.contains_key("error") => return Incoming::Nothing,
        None => return refuse(id.as_ref(), "\"method\" is missing"),
    };
    if message.get("params").is_some_and(|params| !params.is_object()) {
        return match id {
            Some(id) => refuse(Some(&id), "\"params\" must be an object"),
            None => Incoming::Nothing,
        };
    }
    match id {
        Some(id) => Incoming::Request(Request { id, method, message }),
        None => notification(&method, &message),
    }
}

fn notification(method: &str, message: &Map<String, Value>) -> Incoming {
    let cancelled = (method == "notifications/cancelled")
        .then(|| message.get("params")?.get("requestId"))
        .flatten()
        .and_then(|id| serde_json::from_value(id.clone()).ok());
    cancelled.map_or(Incoming::Nothing, Incoming::Cancel)
}

/// Batches left the protocol; every request in one gets its own answer, so that none is left waiting.
fn refuse_batch(batch: &[Value]) -> Vec<Value> {
    const REASON: &str = "batches are not supported; send one message per line";
    let refused: Vec<_> = batch
        .iter()
        .filter(|message| message.get("method").is_some())
        .filter_map(|message| serde_json::from_value::<RequestId>(message.get("id")?.clone()).ok())
        .map(|id| refusal(Some(&id), REASON))
        .take(MAX_REFUSED)
        .collect();
    if refused.is_empty() {
        vec![refusal(None, REASON)]
    } else {
        refused
    }
}

#[cfg(test)]
mod tests;
