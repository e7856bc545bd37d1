//! A request as the provider reads it.

use dsh_llm::{AssistantBlock, ModelMessage, ModelRequest, text_of};
use serde_json::{Map, Value, json};

use crate::Flavour;

/// What the model reads where a tool said nothing: providers refuse empty results.
const NO_OUTPUT: &str = "(no output)";

/// The body of a request: JSON.
pub(crate) fn body(request: &ModelRequest, flavour: Flavour) -> Vec<u8> {
    let header = &request.header;
    let mut body = Map::new();
    body.insert("model".into(), header.model.as_str().into());
    body.insert("messages".into(), messages(request, flavour).into());
    if !header.tools.is_empty() {
        let tools = header.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            })
        });
        body.insert("tools".into(), tools.collect());
    }
    if let Some(temperature) = header.sampling.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(max_tokens) = header.sampling.max_tokens {
        let name = match flavour {
            Flavour::OpenAi => "max_completion_tokens",
            Flavour::DeepSeek | Flavour::Compatible => "max_tokens",
        };
        body.insert(name.into(), max_tokens.into());
    }
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({ "include_usage": true }));
    Value::Object(body).to_string().into_bytes()
}

fn messages(request: &ModelRequest, flavour: Flavour) -> Vec<Value> {
    let system = Some(&request.header.system).filter(|system| !system.is_empty());
    let system = system.map(|system| json!({ "role": "system", "content": system }));
    let conversation = request.messages.iter().filter_map(|message| match message {
        ModelMessage::User { content } => Some(json!({ "role": "user", "content": text_of(content) })),
        ModelMessage::Assistant { content } => assistant(content, flavour),
        ModelMessage::ToolResult {
            call_id,
            content,
            is_error: _,
        } => {
            let text = Some(text_of(content)).filter(|text| !text.is_empty());
            let text = text.unwrap_or_else(|| NO_OUTPUT.to_owned());
            Some(json!({ "role": "tool", "tool_call_id": call_id, "content": text }))
        }
    });
    system.into_iter().chain(conversation).collect()
}

/// `None` for a turn that says nothing and calls nothing: a provider refuses it.
fn assistant(content: &[AssistantBlock], flavour: Flavour) -> Option<Value> {
    let text: String = content.iter().filter_map(AssistantBlock::as_text).collect();
    let calls: Vec<Value> = content
        .iter()
        .filter_map(AssistantBlock::as_tool_call)
        .map(|call| {
            let arguments = match &*call.arguments {
                "" => "{}",
                arguments => arguments,
            };
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": arguments },
            })
        })
        .collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    message.insert("content".into(), text.into());
    if flavour == Flavour::DeepSeek {
        let reasoning: String = content.iter().filter_map(AssistantBlock::as_reasoning).collect();
        // Without it a turn that called tools is refused, whatever came after it; elsewhere it is ignored.
        if !reasoning.is_empty() || !calls.is_empty() {
            message.insert("reasoning_content".into(), reasoning.into());
        }
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    Some(Value::Object(message))
}

#[cfg(test)]
mod tests;
