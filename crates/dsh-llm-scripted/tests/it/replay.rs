//! A recorded session as a script.

use dsh_llm::{AssistantBlock, CallId, FinishReason, ToolCall, Usage};
use dsh_llm_scripted::{ScriptedAdapter, ScriptedModels};
use dsh_session::{Durability, EventData, Session, SessionFile, SessionHeader, SessionId, TurnTrigger};
use tokio_test::{assert_pending, task};

use crate::support::*;

fn answered(content: Vec<AssistantBlock>, finish: Option<FinishReason>, interrupted: bool) -> EventData {
    EventData::AssistantMessage {
        content,
        finish,
        usage: Some(Usage {
            output_tokens: 7,
            ..Usage::default()
        }),
        interrupted,
    }
}

fn call() -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCall {
        id: CallId::new("c9"),
        name: "bash".into(),
        arguments: "{}".into(),
    })
}

/// Four steps of one turn.
fn record(session: &Session) {
    let steps = [
        answered(vec![text("a"), call()], Some(FinishReason::ToolCalls), false),
        answered(vec![text("b")], Some(FinishReason::MaxTokens), false),
        answered(vec![text("c")], None, false),
        answered(vec![text("d")], None, true),
    ];
    let trigger = TurnTrigger::Message;
    session.append(EventData::TurnStart { turn: 1, trigger }).unwrap();
    for (answer, step) in steps.into_iter().zip(1..) {
        session.append(EventData::StepStart { turn: 1, step }).unwrap();
        session.append(answer).unwrap();
        if step == 1 {
            let result = EventData::ToolResult {
                call_id: CallId::new("c9"),
                content: Vec::new(),
                is_error: false,
                error: None,
                value: None,
            };
            session.append(result).unwrap();
        }
        session.append(EventData::StepEnd { turn: 1, step }).unwrap();
    }
}

#[tokio::test]
async fn what_was_said_is_said_again() {
    let session = Session::new(SessionId::new("s"), None);
    record(&session);
    let model = ScriptedAdapter::from_session_log("s", &session.events());
    let first = answer(&model).await;
    assert_eq!(first.content, [text("a"), call()]);
    assert_eq!(first.finish, Some(FinishReason::ToolCalls));
    assert_eq!(first.usage.unwrap().output_tokens, 7);
    assert_eq!(answer(&model).await.finish, Some(FinishReason::MaxTokens));
    assert_eq!(answer(&model).await.finish, None);

    let mut interrupted = send(&model).await.unwrap();
    for _ in ["the text", "its end", "the usage"] {
        assert!(interrupted.next().await.unwrap().is_some());
    }
    assert_pending!(task::spawn(interrupted.next()).poll());
    assert_eq!(model.finish(), Ok(()));
    assert_eq!(refused(&model).await.code, "SCRIPT_EXHAUSTED");
}

#[tokio::test]
async fn the_file_of_a_session_is_a_model() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    let header = SessionHeader::new(SessionId::new("s"), None);
    let session = Session::persisted(SessionFile::create(&path, header).unwrap());
    record(&session);
    session.flush(Durability::Written).await.unwrap();
    let models = ScriptedModels::new();
    let name = path.to_str().unwrap();
    let error = models.load(name).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot replay: session file") && error.contains("is in use"),
        "{error}"
    );
    drop(session);
    assert_eq!(models.load(name).unwrap().unused(), 4);
}
