//! How a model's reply looks to a product.

use serde_json::{Value, json};

use super::{Request, Turn};

/// The protocol a product speaks with its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI's Responses: `POST /v1/responses`.
    Responses,
    /// Anthropic's Messages: `POST /v1/messages`.
    Messages,
    /// Chat completions: `POST /v1/chat/completions`.
    Chat,
}

impl Wire {
    /// Whether the model is asked; the rest are questions about the server.
    pub(super) fn is_model(self, request: &Request) -> bool {
        let path = request.path.split('?').next();
        let wanted = match self {
            Wire::Responses => "/v1/responses",
            Wire::Messages => "/v1/messages",
            Wire::Chat => "/v1/chat/completions",
        };
        request.method == "POST" && path == Some(wanted)
    }

    /// The event stream of a turn that is neither held nor an error.
    pub(super) fn events(self, turn: &Turn, request: &Request) -> String {
        let events = match (self, turn) {
            (_, Turn::Events(events)) => events.clone(),
            (_, Turn::Error(..) | Turn::Redirect(..) | Turn::Held(..)) => Vec::new(),
            (Wire::Responses, Turn::Text(text)) => response(&message(text)),
            (Wire::Messages, Turn::Text(text)) => text_message(text, request),
            (Wire::Chat, Turn::Text(text)) => completion(&json!({ "content": text }), "stop"),
            (_, Turn::Call(tool, arguments)) => self.call(tool, arguments, request),
            (_, Turn::Shell(command)) => {
                let (tool, arguments) = shell(command, request);
                self.call(tool, &arguments, request)
            }
        };
        let mut stream: String = events.iter().map(|event| self.event(event)).collect();
        let ends = !matches!(turn, Turn::Events(_)) || self == Wire::Responses;
        if ends && self != Wire::Messages {
            stream.push_str("data: [DONE]\n\n");
        }
        stream
    }

    fn call(self, tool: &str, arguments: &Value, request: &Request) -> Vec<Value> {
        match self {
            Wire::Responses => {
                let (namespace, name) = namespaced(tool, request);
                response(&json!({
                    "type": "function_call", "namespace": namespace, "name": name, "call_id": call_id(request),
                    "arguments": arguments.to_string()
                }))
            }
            Wire::Messages => tool_message(tool, arguments, request),
            Wire::Chat => {
                let function = json!({"name": tool, "arguments": arguments.to_string()});
                let call =
                    json!({"index": 0, "id": call_id(request), "type": "function", "function": function});
                completion(&json!({ "tool_calls": [call] }), "tool_calls")
            }
        }
    }

    fn event(self, event: &Value) -> String {
        match self {
            Wire::Responses | Wire::Chat => format!("data: {event}\n\n"),
            Wire::Messages => {
                let kind = event["type"].as_str().unwrap_or_default();
                format!("event: {kind}\ndata: {event}\n\n")
            }
        }
    }
}

/// The namespace of a tool, if it is one of those that are offered in one, and its name there.
fn namespaced<'a>(tool: &'a str, request: &'a Request) -> (Option<&'a str>, &'a str) {
    let offered = request.body["tools"].as_array().into_iter().flatten();
    let spaces = offered.filter(|offered| offered["type"] == "namespace");
    let mut found = spaces.filter_map(|space| {
        let space = space["name"].as_str()?;
        Some((Some(space), tool.strip_prefix(space)?.strip_prefix("__")?))
    });
    found.next().unwrap_or((None, tool))
}

/// The product's own shell tool, and the arguments that make it run `command` for as long as it takes.
fn shell(command: &str, request: &Request) -> (&'static str, Value) {
    let tools = request.body["tools"].as_array().into_iter().flatten();
    let names: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    if names.contains(&"exec_command") {
        ("exec_command", json!({"cmd": command, "yield_time_ms": 30000}))
    } else if names.contains(&"shell_command") {
        ("shell_command", json!({"command": command}))
    } else {
        (
            "Bash",
            json!({"command": command, "description": "run a test command"}),
        )
    }
}

/// One that no earlier call of this conversation has.
fn call_id(request: &Request) -> String {
    format!("call-{}", said(request))
}

/// How much was said in this conversation.
fn said(request: &Request) -> usize {
    let said = ["input", "messages"].map(|key| request.body[key].as_array().map_or(0, Vec::len));
    said.iter().sum()
}

/// An answer in two pieces, and what it cost.
fn completion(delta: &Value, finish_reason: &str) -> Vec<Value> {
    let choice =
        |delta: &Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    vec![
        json!({"id": "chat-1", "choices": choice(delta, Value::Null)}),
        json!({"id": "chat-1", "choices": choice(&json!({}), finish_reason.into()), "usage": usage}),
    ]
}

fn message(text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"type": "message", "role": "assistant", "id": "message-1", "content": content})
}

fn response(item: &Value) -> Vec<Value> {
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    vec![
        json!({"type": "response.created", "response": {"id": "response-1"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "response-1", "usage": usage}}),
    ]
}

fn text_message(text: &str, request: &Request) -> Vec<Value> {
    let block = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": text});
    messages(&block, &delta, "end_turn", request)
}

fn tool_message(tool: &str, arguments: &Value, request: &Request) -> Vec<Value> {
    let block = json!({"type": "tool_use", "id": call_id(request), "name": tool, "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": arguments.to_string()});
    messages(&block, &delta, "tool_use", request)
}

fn messages(block: &Value, delta: &Value, stop_reason: &str, request: &Request) -> Vec<Value> {
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    // Messages of one id would be one message.
    let id = format!("message-{}", said(request));
    vec![
        json!({"type": "message_start", "message": {
            "id": id, "type": "message", "role": "assistant", "model": request.body["model"],
            "content": [], "stop_reason": null, "usage": usage
        }}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]
}
