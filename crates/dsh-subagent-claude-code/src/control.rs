//! The answers to what Claude Code asks: nobody is there.

use serde_json::{Value, json};

use crate::fact::Fact;

/// What the model reads for a tool that nobody could allow.
const UNATTENDED: &str = "This run is unattended: nobody can allow this call. Do without it, or say in your answer what could not be done.";

/// The whole answer to a `control_request`, and what it decided.
pub(crate) fn answer(message: &Value) -> (Value, Option<Fact>) {
    let (id, request) = (&message["request_id"], &message["request"]);
    let subtype = request["subtype"].as_str().unwrap_or_default();
    let (body, fact) = match subtype {
        "can_use_tool" => (
            json!({"behavior": "deny", "message": UNATTENDED, "toolUseID": request["tool_use_id"]}),
            Fact::ToolPermission,
        ),
        "elicitation" => (json!({"action": "decline"}), Fact::Elicitation),
        "request_user_dialog" => (json!({"behavior": "cancelled"}), Fact::Dialog),
        // Hooks, MCP servers and tokens of ours: there are none.
        _ => {
            let error = format!("Unsupported control request subtype: {subtype}");
            return (
                response(json!({"subtype": "error", "request_id": id, "error": error})),
                None,
            );
        }
    };
    (
        response(json!({"subtype": "success", "request_id": id, "response": body})),
        Some(fact),
    )
}

fn response(response: Value) -> Value {
    json!({"type": "control_response", "response": response})
}
