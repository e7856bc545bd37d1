//! Events, whole logs, and logs by chance.

use std::path::{Path, PathBuf};

use dsh_llm::{
    AssistantBlock, CallId, ContentBlock, FinishReason, RequestHeader, Sampling, ToolCall, ToolSpec, Usage,
};
use dsh_session::{
    Enclosure, ErrorInfo, Event, EventData, HeaderReason, Message, MessageSource, SessionHeader, SessionId,
    TurnEnd, TurnTrigger,
};
use proptest::prelude::*;
use serde_json::json;

pub(crate) fn turn_start(turn: u64) -> EventData {
    let trigger = TurnTrigger::Message;
    EventData::TurnStart { turn, trigger }
}

pub(crate) fn turn_end(turn: u64) -> EventData {
    let reason = TurnEnd::Completed;
    EventData::TurnEnd { turn, reason }
}

pub(crate) fn step_start(turn: u64, step: u64) -> EventData {
    EventData::StepStart { turn, step }
}

pub(crate) fn step_end(turn: u64, step: u64) -> EventData {
    EventData::StepEnd { turn, step }
}

pub(crate) fn said(text: &str) -> EventData {
    EventData::UserMessage(Message::user(text))
}

pub(crate) fn notice(text: &str) -> EventData {
    EventData::UserMessage(Message {
        content: vec![ContentBlock::text(text)],
        source: MessageSource::Plugin {
            plugin: "tool-tasks".into(),
            form: "notice".into(),
            summary: "build".into(),
            subjects: vec!["bash-1".into()],
        },
    })
}

pub(crate) fn header(reason: HeaderReason, model: &str) -> EventData {
    let header = RequestHeader {
        provider: "scripted".into(),
        model: model.into(),
        system: "be brief".into(),
        tools: vec![ToolSpec {
            name: "bash".into(),
            description: "runs a command".into(),
            parameters: json!({"type": "object"}),
        }],
        sampling: Sampling {
            temperature: Some(0.1 + 0.2),
            max_tokens: None,
        },
    };
    EventData::RequestHeader { reason, header }
}

pub(crate) fn model_choice(model: &str) -> EventData {
    EventData::ModelChoice {
        provider: "scripted".into(),
        model: model.into(),
    }
}

pub(crate) fn call(id: &str) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCall {
        id: CallId::new(id),
        name: "bash".into(),
        arguments: r#"{"command":"ls"}"#.into(),
    })
}

pub(crate) fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.into() }
}

pub(crate) fn answer(content: Vec<AssistantBlock>) -> EventData {
    EventData::AssistantMessage {
        content,
        finish: Some(FinishReason::Stop),
        usage: Some(Usage {
            input_tokens: 3,
            cache_read_tokens: 2,
            output_tokens: 1,
        }),
        interrupted: false,
    }
}

pub(crate) fn interrupted_answer(content: Vec<AssistantBlock>) -> EventData {
    EventData::AssistantMessage {
        content,
        finish: None,
        usage: None,
        interrupted: true,
    }
}

pub(crate) fn tool_call(id: &str) -> EventData {
    EventData::ToolCall {
        call_id: CallId::new(id),
        name: "bash".into(),
        arguments: r#"{"command":"ls"}"#.into(),
    }
}

pub(crate) fn tool_result(id: &str, text: &str) -> EventData {
    EventData::ToolResult {
        call_id: CallId::new(id),
        content: vec![ContentBlock::text(text)],
        is_error: false,
        error: None,
        value: Some(json!({"exit": [1.5e300, null, "é\n"]})),
    }
}

pub(crate) fn tool_failure(id: &str) -> EventData {
    EventData::ToolResult {
        call_id: CallId::new(id),
        content: vec![ContentBlock::text("Error: no")],
        is_error: true,
        error: Some(ErrorInfo {
            name: "ToolError".into(),
            code: "NO".into(),
        }),
        value: None,
    }
}

/// What a crash leaves behind for a call.
pub(crate) fn crash_result(id: &str) -> EventData {
    without_result(id, "Tool call interrupted by a crash; no result was recorded.")
}

/// What the end of a turn leaves behind for a call, in a harness that lives on.
pub(crate) fn cut_off_result(id: &str) -> EventData {
    without_result(
        id,
        "Tool call cut off by the end of its turn; no result was recorded.",
    )
}

fn without_result(id: &str, text: &str) -> EventData {
    EventData::ToolResult {
        call_id: CallId::new(id),
        content: vec![ContentBlock::text(text)],
        is_error: true,
        error: Some(ErrorInfo {
            name: "InterruptedError".into(),
            code: "interrupted".into(),
        }),
        value: None,
    }
}

pub(crate) fn interrupted(turn: u64) -> EventData {
    let reason = TurnEnd::Interrupted;
    EventData::TurnEnd { turn, reason }
}

/// Two turns with all there is.
pub(crate) fn whole_log() -> Vec<EventData> {
    vec![
        turn_start(1),
        said("look"),
        step_start(1, 1),
        header(HeaderReason::Initial, "m-1"),
        answer(vec![
            AssistantBlock::Reasoning { text: "hm".into() },
            text("ok"),
            call("c1"),
            call("c2"),
        ]),
        tool_call("c1"),
        tool_result("c1", "a\nb"),
        tool_failure("c2"),
        said("faster"),
        step_end(1, 1),
        step_start(1, 2),
        answer(vec![text("done")]),
        step_end(1, 2),
        turn_end(1),
        EventData::TurnStart {
            turn: 2,
            trigger: TurnTrigger::Notice,
        },
        notice("bash-1 finished"),
        step_start(2, 1),
        header(HeaderReason::Change, "m-2"),
        interrupted_answer(vec![text("I wi"), call("c1")]),
        step_end(2, 1),
        EventData::TurnEnd {
            turn: 2,
            reason: TurnEnd::Aborted {
                reason: "cancelled".into(),
            },
        },
    ]
}

/// Numbers them, as a log does; a new millisecond each.
pub(crate) fn numbered(data: Vec<EventData>) -> Vec<Event> {
    let numbered = data.into_iter().zip(0..);
    numbered
        .map(|(data, seq)| Event {
            seq,
            time: 1_700_000_000_000 + seq,
            data,
        })
        .collect()
}

/// A log by chance: each number chooses among the events that may come next.
pub(crate) fn any_log(most: usize) -> impl Strategy<Value = Vec<EventData>> {
    proptest::collection::vec(any::<u8>(), 1..most).prop_map(|choices| {
        let mut enclosure = Enclosure::default();
        let mut log = Vec::new();
        let (mut turn, mut step) = (0, 0);
        for choice in choices {
            let mut possible = vec![
                turn_start(turn + 1),
                turn_end(turn),
                step_start(turn, step + 1),
                step_end(turn, step),
                said(&format!("é {choice}\n")),
                notice("done"),
                header(HeaderReason::Change, &format!("m-{}", choice % 2)),
                model_choice("m-3"),
                answer(vec![text("x"), call("c1"), call("c2"), call("c3")]),
                answer(Vec::new()),
                interrupted_answer(vec![text("x"), call("c1")]),
                interrupted_answer(vec![call("c1")]),
            ];
            for id in ["c1", "c2", "c3"] {
                possible.extend([tool_call(id), tool_result(id, "out"), tool_failure(id)]);
            }
            possible.retain(|data| enclosure.clone().admit(data).is_ok());
            let chosen = possible.swap_remove(usize::from(choice) % possible.len());
            match chosen {
                EventData::TurnStart { .. } => (turn, step) = (turn + 1, 0),
                EventData::StepStart { .. } => step += 1,
                _ => {}
            }
            enclosure.admit(&chosen).unwrap();
            log.push(chosen);
        }
        log
    })
}

/// A directory with the place of one session's file.
pub(crate) struct Room {
    directory: tempfile::TempDir,
}

impl Room {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("s.jsonl")
    }

    /// Names of all that is in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn session_header() -> SessionHeader {
    SessionHeader {
        created_at: 1_700_000_000_000,
        ..SessionHeader::new(SessionId::new("s"), Some(PathBuf::from("/srv")))
    }
}

/// The bytes of a file with these events.
pub(crate) fn file_of(events: &[Event]) -> Vec<u8> {
    let header = r#"{"type":"session","version":0,"id":"s","createdAt":1700000000000,"cwd":"/srv"}"#;
    let lines = events.iter().map(|event| serde_json::to_string(event).unwrap());
    let mut file = String::new();
    for line in std::iter::once(header.to_owned()).chain(lines) {
        file.push_str(&line);
        file.push('\n');
    }
    file.into_bytes()
}

pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::write(path, bytes).unwrap();
}

/// Runs a future that needs no timers.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(future)
}
