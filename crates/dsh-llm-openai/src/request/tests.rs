use dsh_llm::{CallId, ContentBlock, RequestHeader, Sampling, ToolCall, ToolSpec};

use super::*;

fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        header: RequestHeader {
            provider: "deepseek".into(),
            model: "deepseek-chat".into(),
            system: String::new(),
            tools: Vec::new(),
            sampling: Sampling::default(),
        },
        messages,
    }
}

fn sent(request: &ModelRequest, flavour: Flavour) -> Value {
    serde_json::from_slice(&body(request, flavour)).unwrap()
}

fn user(text: &str) -> ModelMessage {
    ModelMessage::User {
        content: vec![ContentBlock::text(text)],
    }
}

fn call(id: &str, arguments: &str) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCall {
        id: CallId::new(id),
        name: "bash".into(),
        arguments: arguments.into(),
    })
}

fn reasoning(text: &str) -> AssistantBlock {
    AssistantBlock::Reasoning { text: text.into() }
}

fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.into() }
}

fn result(id: &str, content: Vec<ContentBlock>) -> ModelMessage {
    ModelMessage::ToolResult {
        call_id: CallId::new(id),
        content,
        is_error: true,
    }
}

#[test]
fn the_smallest_request_asks_for_a_stream_with_usage_and_nothing_else() {
    assert_eq!(
        sent(&request(vec![user("hi")]), Flavour::DeepSeek),
        json!({
            "model": "deepseek-chat",
            "messages": [{ "role": "user", "content": "hi" }],
            "stream": true,
            "stream_options": { "include_usage": true },
        })
    );
}

#[test]
fn all_of_the_header_is_sent() {
    let mut request = request(vec![]);
    request.header.system = "be brief".into();
    request.header.sampling = Sampling {
        temperature: Some(0.5),
        max_tokens: Some(9),
    };
    request.header.tools = vec![ToolSpec {
        name: "bash".into(),
        description: "runs".into(),
        parameters: json!({ "type": "object" }),
    }];
    let body = sent(&request, Flavour::Compatible);
    assert_eq!(
        body["messages"],
        json!([{ "role": "system", "content": "be brief" }])
    );
    assert_eq!(
        (&body["temperature"], &body["max_tokens"]),
        (&json!(0.5), &json!(9))
    );
    let function = json!({ "name": "bash", "description": "runs", "parameters": { "type": "object" } });
    assert_eq!(
        body["tools"],
        json!([{ "type": "function", "function": function }])
    );

    let body = sent(&request, Flavour::OpenAi);
    assert_eq!(body["max_completion_tokens"], json!(9));
    assert_eq!(
        body.get("max_tokens"),
        None,
        "its newer models refuse the old name"
    );
}

#[test]
fn each_message_and_each_result_stays_its_own() {
    let turn = ModelMessage::Assistant {
        content: vec![call("a", "{\"x\":1}"), call("b", "")],
    };
    let results = [
        result("a", vec![ContentBlock::text("done")]),
        result("b", Vec::new()),
    ];
    let messages = [vec![user("1"), user("2"), turn], results.to_vec()].concat();
    assert_eq!(
        sent(&request(messages), Flavour::OpenAi)["messages"],
        json!([
            { "role": "user", "content": "1" },
            { "role": "user", "content": "2" },
            { "role": "assistant", "content": "", "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "bash", "arguments": "{\"x\":1}" } },
                { "id": "b", "type": "function", "function": { "name": "bash", "arguments": "{}" } },
            ] },
            { "role": "tool", "tool_call_id": "a", "content": "done" },
            { "role": "tool", "tool_call_id": "b", "content": "(no output)" },
        ])
    );
}

#[test]
fn reasoning_goes_back_to_deepseek_only() {
    let turns = || {
        vec![
            ModelMessage::Assistant {
                content: vec![reasoning("hm "), reasoning("so"), call("a", "{}")],
            },
            ModelMessage::Assistant {
                content: vec![call("b", "{}")],
            },
            ModelMessage::Assistant {
                content: vec![reasoning("ok"), text("done")],
            },
            ModelMessage::Assistant {
                content: vec![text("bye")],
            },
        ]
    };
    let sent_back = |flavour| {
        let body = sent(&request(turns()), flavour);
        let messages = body["messages"].as_array().unwrap().clone();
        messages
            .iter()
            .map(|message| message.get("reasoning_content").cloned())
            .collect::<Vec<_>>()
    };
    let some = |text: &str| Some(json!(text));
    assert_eq!(
        sent_back(Flavour::DeepSeek),
        [some("hm so"), some(""), some("ok"), None],
        "a turn with calls has it even when there was none"
    );
    for flavour in [Flavour::OpenAi, Flavour::Compatible] {
        assert_eq!(sent_back(flavour), [None, None, None, None]);
    }
}

#[test]
fn a_turn_that_says_nothing_is_left_out() {
    let silent = ModelMessage::Assistant {
        content: vec![reasoning("hm")],
    };
    let body = sent(&request(vec![user("a"), silent, user("b")]), Flavour::DeepSeek);
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
}
