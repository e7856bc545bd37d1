use dsh_llm::{Assembler, AssistantBlock, Retry, ToolCall};
use serde_json::{Value, json};

use super::*;

fn answer() -> Answer {
    Answer::new(Reporter::new("h".into(), None), 3)
}

/// The chunks of a stream, and how it ended.
fn chunks(events: &[Value]) -> (Vec<Chunk>, Result<(), ModelError>) {
    let mut answer = answer();
    let mut out = VecDeque::new();
    let end = events
        .iter()
        .try_for_each(|event| answer.event(event.to_string().as_bytes(), &mut out).map(drop))
        .and_then(|()| answer.end(&mut out));
    (out.into(), end)
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(deltas: Value) -> Value {
    delta(json!({ "tool_calls": deltas }))
}

fn assembled(events: &[Value]) -> (Vec<AssistantBlock>, Option<FinishReason>) {
    let (chunks, end) = chunks(events);
    end.unwrap();
    let mut assembler = Assembler::new();
    chunks.into_iter().for_each(|chunk| assembler.push(chunk));
    let answer = assembler.finish();
    (answer.content, answer.finish)
}

fn call(id: &str, name: &str, arguments: &str) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCall {
        id: CallId::new(id),
        name: name.into(),
        arguments: arguments.into(),
    })
}

#[test]
fn empty_pieces_open_no_block() {
    let events = [
        delta(json!({"role": "assistant", "content": null, "reasoning_content": ""})),
        delta(json!({"content": null, "reasoning_content": "hm"})),
        delta(json!({"content": "", "reasoning_content": null})),
        delta(json!({"content": "a"})),
        delta(json!({"content": "b"})),
        finish("stop"),
    ];
    let text = |text: &str| Chunk::TextDelta {
        index: 1,
        text: text.into(),
    };
    assert_eq!(
        chunks(&events).0,
        [
            Chunk::ReasoningDelta {
                index: 0,
                text: "hm".into()
            },
            text("a"),
            text("b"),
            Chunk::Finish(FinishReason::Stop),
        ]
    );
}

#[test]
fn reasoning_is_read_under_both_names_and_once() {
    let events = [
        delta(json!({"reasoning": "a", "reasoning_content": "a"})),
        delta(json!({"reasoning": "b"})),
        delta(json!({"reasoning": {"effort": 1}})),
        finish("stop"),
    ];
    let block = AssistantBlock::Reasoning { text: "ab".into() };
    assert_eq!(assembled(&events).0, [block]);
}

#[test]
fn calls_are_told_apart_by_index() {
    let events = [
        calls(
            json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "x", "arguments": ""}}]),
        ),
        calls(json!([{"index": 0, "function": {"arguments": "{\"p\""}}])),
        calls(json!([{"index": 1, "id": "b", "function": {"name": "y", "arguments": "{}"}}])),
        calls(json!([{"index": 0, "id": "", "function": {"name": "", "arguments": ":1}"}}])),
        finish("tool_calls"),
    ];
    let (content, reason) = assembled(&events);
    assert_eq!(content, [call("a", "x", "{\"p\":1}"), call("b", "y", "{}")]);
    assert_eq!(reason, Some(FinishReason::ToolCalls));
}

#[test]
fn calls_that_share_an_index_or_have_none_are_told_apart_by_id() {
    for index in [json!(0), json!(null)] {
        let events = [
            calls(json!([
                {"index": index, "id": "a", "function": {"name": "x", "arguments": "{}"}},
                {"index": index, "id": "b", "function": {"name": "x", "arguments": "{"}},
            ])),
            calls(json!([{"index": index, "function": {"arguments": "}"}}])),
            finish("tool_calls"),
        ];
        assert_eq!(
            assembled(&events).0,
            [call("a", "x", "{}"), call("b", "x", "{}")],
            "{index}"
        );
    }
}

#[test]
fn what_repeats_id_and_name_goes_on() {
    let events = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "1"}}])),
        calls(json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "2"}}])),
        calls(json!([{"index": 0, "id": "other", "function": {"arguments": "3"}}])),
        finish("tool_calls"),
    ];
    assert_eq!(assembled(&events).0, [call("a", "x", "123")]);
}

#[test]
fn missing_and_repeated_ids_are_made_up() {
    let events = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}])),
        calls(json!([{"index": 1, "id": "a", "function": {"name": "y", "arguments": "{}"}}])),
        calls(json!([{"index": 2, "function": {"name": "z", "arguments": "{}"}}])),
        finish("tool_calls"),
    ];
    assert_eq!(
        assembled(&events).0,
        [
            call("a", "x", "{}"),
            call("call_3_1", "y", "{}"),
            call("call_3_2", "z", "{}")
        ]
    );
}

#[test]
fn every_reason_has_its_meaning() {
    let text = delta(json!({"content": "a"}));
    for (reason, expected) in [("stop", FinishReason::Stop), ("length", FinishReason::MaxTokens)] {
        assert_eq!(assembled(&[text.clone(), finish(reason)]).1, Some(expected));
    }
    for (reason, expected) in [
        ("content_filter", "CONTENT_FILTER"),
        ("hiccup", "UNKNOWN_FINISH_REASON"),
    ] {
        let Some(FinishReason::Error { code, message }) = assembled(&[text.clone(), finish(reason)]).1 else {
            panic!("{reason} is no success");
        };
        assert_eq!(code.as_deref(), Some(expected), "{message}");
    }
    let error = chunks(&[text, finish("insufficient_system_resource")])
        .1
        .unwrap_err();
    assert_eq!(
        (&*error.code, error.retry),
        ("SERVER", Retry::Later { after: None })
    );
}

#[test]
fn a_stop_with_calls_is_for_the_calls() {
    let one = calls(json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}]));
    assert_eq!(
        assembled(&[one.clone(), finish("stop")]).1,
        Some(FinishReason::ToolCalls)
    );
    assert_eq!(
        assembled(&[one, finish("length")]).1,
        Some(FinishReason::MaxTokens)
    );
}

#[test]
fn calls_that_cannot_be_made_are_malformed() {
    let nameless = calls(json!([{"index": 0, "id": "a", "function": {"arguments": "{}"}}]));
    for events in [vec![finish("tool_calls")], vec![nameless, finish("tool_calls")]] {
        assert_eq!(chunks(&events).1.unwrap_err().code, "MALFORMED_RESPONSE");
    }
}

#[test]
fn usage_is_disjoint_and_comes_once_before_the_finish() {
    let usage = |usage: Value| json!({"choices": [], "usage": usage});
    let deepseek = json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_cache_hit_tokens": 7,
        "prompt_cache_miss_tokens": 3, "prompt_tokens_details": {"cached_tokens": 7}});
    let openai =
        json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 7}});
    for counts in [deepseek, openai] {
        let early = usage(json!({"prompt_tokens": 1, "completion_tokens": 1}));
        let (chunks, _) = chunks(&[early, finish("stop"), usage(counts)]);
        let expected = Usage {
            input_tokens: 3,
            cache_read_tokens: 7,
            output_tokens: 4,
        };
        assert_eq!(
            chunks,
            [Chunk::Usage(expected), Chunk::Finish(FinishReason::Stop)]
        );
    }
    let lie = json!({"prompt_tokens": 1, "completion_tokens": null, "prompt_cache_hit_tokens": 7});
    let (chunks, end) = chunks(&[finish("stop"), usage(lie)]);
    assert_eq!(end, Ok(()));
    let expected = Usage {
        input_tokens: 0,
        cache_read_tokens: 1,
        output_tokens: 0,
    };
    assert_eq!(chunks[0], Chunk::Usage(expected));
}

#[test]
fn odd_counts_cost_no_answer() {
    let counted = |prompt: Value, completion: Value| {
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion});
        let events = [
            delta(json!({"content": "good"})),
            finish("stop"),
            json!({"choices": [], "usage": usage}),
        ];
        let (chunks, end) = chunks(&events);
        assert_eq!(end, Ok(()), "{usage}");
        chunks.into_iter().find_map(|chunk| match chunk {
            Chunk::Usage(usage) => Some((usage.input_tokens, usage.output_tokens)),
            _ => None,
        })
    };
    for odd in [
        json!(-1),
        json!(1.5),
        json!("12"),
        json!([]),
        json!({}),
        json!(true),
    ] {
        assert_eq!(counted(odd.clone(), json!(4)), Some((0, 4)), "{odd}");
        assert_eq!(counted(odd.clone(), odd), None);
    }
    let beyond: Value = serde_json::from_str("18446744073709551616").unwrap();
    assert_eq!(counted(beyond.clone(), beyond), Some((u64::MAX, u64::MAX)));
    for usage in [json!([]), json!("none"), json!(7), json!({})] {
        let counts = json!({"choices": [], "usage": {"prompt_tokens": 1}});
        let odd = json!({"choices": [], "usage": usage});
        let (chunks, end) = chunks(&[finish("stop"), counts, odd]);
        assert_eq!(end, Ok(()));
        assert!(matches!(&chunks[0], Chunk::Usage(usage) if usage.input_tokens == 1));
    }
}

#[test]
fn an_error_that_says_nothing_is_none() {
    let blanks = [
        json!(""),
        json!({}),
        json!([]),
        json!(false),
        json!({"code": 0, "message": ""}),
    ];
    for blank in blanks {
        let mut good = delta(json!({"content": "good"}));
        good["error"] = blank;
        let (content, _) = assembled(&[good, finish("stop")]);
        assert_eq!(content, [AssistantBlock::Text { text: "good".into() }]);
    }
    let mut bad = delta(json!({"content": "good"}));
    bad["error"] = json!({"code": 0, "message": "overloaded"});
    assert!(chunks(&[bad, finish("stop")]).1.is_err());
}

#[test]
fn text_in_parts_is_text() {
    let parts = json!([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]);
    let events = [
        delta(json!({"content": parts})),
        delta(json!({"content": []})),
        finish("stop"),
    ];
    assert_eq!(assembled(&events).0, [AssistantBlock::Text { text: "ab".into() }]);
}

#[test]
fn arguments_that_come_as_their_value_are_text_again() {
    let of = |arguments: Value| {
        let function = json!({"name": "run", "arguments": arguments});
        let events = [
            calls(json!([{"index": 0, "id": "a", "function": function}])),
            finish("tool_calls"),
        ];
        assembled(&events).0
    };
    assert_eq!(of(json!({"n": 1})), [call("a", "run", "{\"n\":1}")]);
    assert_eq!(of(json!("{}")), [call("a", "run", "{}")]);
    assert_eq!(of(Value::Null), [call("a", "run", "")]);
}

#[test]
fn without_a_reason_it_is_cut() {
    let (chunks, end) = chunks(&[delta(json!({"content": "a"}))]);
    assert_eq!(chunks.len(), 1, "what came is given");
    let error = end.unwrap_err();
    assert_eq!(
        (&*error.code, error.retry),
        ("STREAM_CLOSED", Retry::Later { after: None })
    );
}

#[test]
fn what_is_no_event_is_malformed() {
    for data in [
        "{",
        "null",
        "7",
        "hello",
        "{\"choices\": 7}",
        "{\"choices\": [{\"delta\": {\"content\": 7}}]}",
        "\u{1}",
    ] {
        let error = answer().event(data.as_bytes(), &mut VecDeque::new()).unwrap_err();
        assert_eq!(error.code, "MALFORMED_RESPONSE", "{data}");
    }
    let invalid = b"{\"choices\": [{\"delta\": {\"content\": \"\xFF\"}}]}";
    assert!(answer().event(invalid, &mut VecDeque::new()).is_err());
}

#[test]
fn what_says_nothing_is_skipped() {
    let mut out = VecDeque::new();
    for data in [
        "",
        " ",
        "{}",
        "{\"choices\":[]}",
        "{\"choices\":[{}]}",
        "{\"error\":null}",
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"another answer\"},\"finish_reason\":\"stop\"}]}",
    ] {
        assert_eq!(
            answer().event(data.as_bytes(), &mut out),
            Ok(Progress::More),
            "{data}"
        );
    }
    assert!(out.is_empty());
    assert_eq!(answer().event(b" [DONE] ", &mut out), Ok(Progress::Done));
}

#[test]
fn endless_answers_are_refused() {
    let mut answer = answer();
    let text = delta(json!({"content": "x".repeat(1 << 20)})).to_string();
    let pushed = (0..100).position(|_| answer.event(text.as_bytes(), &mut VecDeque::new()).is_err());
    assert!(pushed.is_some_and(|pushed| pushed <= MAX_ANSWER >> 20));

    let many: Vec<Value> = (0..=MAX_BLOCKS).map(|index| json!({ "index": index })).collect();
    let flood = calls(many.into()).to_string();
    let error = self::answer()
        .event(flood.as_bytes(), &mut VecDeque::new())
        .unwrap_err();
    assert_eq!(error.code, "MALFORMED_RESPONSE");
}
