//! What a turn gives.

use std::sync::Arc;

use dsh_llm::{
    AssistantBlock, CallId, Chunk, ContentBlock, FinishReason, ModelAdapter, ModelMessage, Retry, ToolCall,
};
use dsh_llm_scripted::ScriptedAdapter;
use dsh_testkit::eventually;
use tokio_test::{assert_pending, assert_ready, task};
use tokio_util::sync::CancellationToken;

use crate::support::*;

fn call(id: &str, name: &str, arguments: &str) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCall {
        id: CallId::new(id),
        name: name.into(),
        arguments: arguments.into(),
    })
}

#[tokio::test]
async fn turns_answer_calls_in_order() {
    let model = script(
        r#"{"turns": [
            {"reasoning": "hm", "text": "one moment", "tool_calls": [
                {"name": "bash", "arguments": {"command": "ls", "a": 1}},
                {"name": "bash", "arguments": "{not json"},
                {"name": "task_list", "id": "mine"}
            ]},
            {"tool_calls": [{"name": "task_list"}]},
            {"text": "done", "finish": "max-tokens"},
            {"finish": "stop"}
        ]}"#,
    );
    let first = answer(&model).await;
    let expected = [
        AssistantBlock::Reasoning { text: "hm".into() },
        text("one moment"),
        call("call-1", "bash", r#"{"command":"ls","a":1}"#),
        call("call-2", "bash", "{not json"),
        call("mine", "task_list", "{}"),
    ];
    assert_eq!(first.content, expected);
    assert_eq!(first.finish, Some(FinishReason::ToolCalls));
    let second = answer(&model).await;
    assert_eq!(second.content, [call("call-4", "task_list", "{}")]);
    assert_eq!(answer(&model).await.finish, Some(FinishReason::MaxTokens));
    assert_eq!(model.unused(), 1);
    let empty = answer(&model).await;
    assert_eq!(empty.content, []);
    assert_eq!(empty.finish, Some(FinishReason::Stop));
    assert_eq!(model.finish(), Ok(()));
}

#[tokio::test]
async fn an_answer_comes_in_pieces() {
    let model = script(r#"{"turns": [{"text": "a b", "tool_calls": [{"name": "x"}]}]}"#);
    let piece = |text: &str| Chunk::TextDelta {
        index: 0,
        text: text.into(),
    };
    let of_call = |id: Option<&str>, name: Option<&str>, arguments: &str| Chunk::ToolCallDelta {
        index: 1,
        id: id.map(CallId::new),
        name: name.map(str::to_owned),
        arguments: arguments.into(),
    };
    let expected = [
        piece("a "),
        piece("b"),
        Chunk::BlockEnd {
            index: 0,
            block: text("a b"),
        },
        of_call(Some("call-1"), Some("x"), ""),
        of_call(None, None, "{}"),
        Chunk::BlockEnd {
            index: 1,
            block: call("call-1", "x", "{}"),
        },
        Chunk::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!(chunks(send(&model).await.unwrap()).await, expected);
}

#[tokio::test]
async fn a_failure_comes_at_once_or_after_what_was_said() {
    let model = script(
        r#"{"turns": [
            {"error": {"message": "down", "code": "SERVER", "retry": "later"}},
            {"error": {"message": "no", "retry": "never"}},
            {"text": "half", "error": {"message": "no"}}
        ]}"#,
    );
    let error = send(&model).await.err().unwrap();
    assert_eq!((error.message.as_str(), error.code.as_str()), ("down", "SERVER"));
    assert_eq!(error.retry, Retry::Later { after: None });
    let error = send(&model).await.err().unwrap();
    assert_eq!((error.code.as_str(), error.retry), ("SCRIPTED", Retry::Never));

    let mut stream = send(&model).await.unwrap();
    assert!(matches!(stream.next().await, Ok(Some(Chunk::TextDelta { .. }))));
    assert!(matches!(stream.next().await, Ok(Some(Chunk::BlockEnd { .. }))));
    assert_eq!(stream.next().await.unwrap_err(), error);
    assert_eq!(stream.next().await, Ok(None), "nothing comes after it");
    assert_eq!(
        model.finish(),
        Ok(()),
        "a failure that is in the script is no misfit"
    );
}

#[tokio::test]
async fn a_cut_stream_ends_without_a_reason() {
    let model = script(r#"{"turns": [{"text": "half", "cut": true}]}"#);
    let answer = answer(&model).await;
    assert_eq!(answer.content, [text("half")]);
    assert_eq!(answer.finish, None);
}

#[tokio::test]
async fn a_hanging_answer_ends_when_it_is_cancelled() {
    let model = script(r#"{"turns": [{"text": "working", "hang": true}]}"#);
    let token = CancellationToken::new();
    let mut stream = model
        .send(request("test", Vec::new()), token.clone())
        .await
        .unwrap();
    assert!(matches!(stream.next().await, Ok(Some(Chunk::TextDelta { .. }))));
    assert!(matches!(stream.next().await, Ok(Some(Chunk::BlockEnd { .. }))));
    assert_pending!(task::spawn(stream.next()).poll());
    let mut next = task::spawn(stream.next());
    assert_pending!(next.poll());
    token.cancel();
    assert!(next.is_woken());
    assert_eq!(
        assert_ready!(next.poll()),
        Ok(Some(Chunk::Finish(FinishReason::Aborted)))
    );
    drop(next);
    assert_eq!(stream.next().await, Ok(None));
}

#[tokio::test]
async fn any_answer_ends_when_it_is_cancelled() {
    let model = script(r#"{"turns": [{"text": "a b c"}]}"#);
    let token = CancellationToken::new();
    let mut stream = model
        .send(request("test", Vec::new()), token.clone())
        .await
        .unwrap();
    assert!(matches!(stream.next().await, Ok(Some(Chunk::TextDelta { .. }))));
    token.cancel();
    assert_eq!(chunks(stream).await, [Chunk::Finish(FinishReason::Aborted)]);
}

#[tokio::test]
async fn what_is_expected_must_have_been_told_since_the_last_answer() {
    let turns = r#"{"turns": [{"text": "x", "expect": ["bash-1", "exit code: 0"]}]}"#;
    let result = ModelMessage::ToolResult {
        call_id: CallId::new("c1"),
        content: vec![ContentBlock::text("[status: completed, exit code: 0]")],
        is_error: false,
    };
    let answered = ModelMessage::Assistant {
        content: vec![text("I see")],
    };
    let told = vec![answered.clone(), result, user("bash-1 finished")];
    let fitting = script(turns);
    fitting
        .send(request("test", told.clone()), CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(fitting.finish(), Ok(()));

    let model = script(turns);
    let told = [told, vec![answered, user("bash-1 finished")]].concat();
    let sent = model.send(request("test", told), CancellationToken::new()).await;
    let error = sent.err().unwrap();
    assert_eq!(
        (error.code.as_str(), error.retry),
        ("SCRIPT_MISMATCH", Retry::Never)
    );
    let problem = r#"script test: turns[0] expects "exit code: 0", but call 1 was told "bash-1 finished""#;
    assert_eq!(error.message, problem);
    assert_eq!(model.finish().unwrap_err().to_string(), problem);
}

#[tokio::test]
async fn an_exhausted_script_refuses_every_further_call() {
    let model = script(r#"{"turns": [{"text": "x"}]}"#);
    answer(&model).await;
    for number in [2, 3] {
        let error = refused(&model).await;
        assert_eq!(
            (error.code.as_str(), error.retry),
            ("SCRIPT_EXHAUSTED", Retry::Never)
        );
        let expected = format!("script test: call {number} has no turn: there are 1");
        assert_eq!(error.message, expected);
    }
    assert_eq!(
        model.finish().unwrap_err().to_string(),
        "script test: call 2 has no turn: there are 1; call 3 has no turn: there are 1"
    );
}

#[tokio::test]
async fn turns_that_nobody_asked_for_are_told() {
    let model = script(r#"{"turns": [{"text": "x"}, {"text": "y"}, {"text": "z"}]}"#);
    let told = |model: &ScriptedAdapter| model.finish().unwrap_err().to_string();
    assert_eq!(
        told(&model),
        "script test: turns[0] to turns[2] were never asked for"
    );
    answer(&model).await;
    answer(&model).await;
    assert_eq!(told(&model), "script test: turns[2] was never asked for");
    assert_eq!(model.unused(), 1);
}

fn waiting_for(file: &std::path::Path) -> ScriptedAdapter {
    script(&format!(
        r#"{{"turns": [{{"text": "x", "wait_for_file": {file:?}}}]}}"#
    ))
}

#[tokio::test]
async fn an_answer_waits_for_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ready");
    let model = waiting_for(&file);
    let mut sending = task::spawn(send(&model));
    assert!(sending.poll().is_pending());
    std::fs::write(&file, "").unwrap();
    eventually("the timer to fire", || sending.is_woken()).await;
    let mut stream = sending.await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
}

#[tokio::test]
async fn waiting_for_a_file_ends_when_the_request_is_cancelled() {
    let model = waiting_for("/nowhere/at/all".as_ref());
    let token = CancellationToken::new();
    let mut sending = task::spawn(model.send(request("test", Vec::new()), token.clone()));
    assert!(sending.poll().is_pending());
    token.cancel();
    assert_eq!(assert_ready!(sending.poll()).err().unwrap().code, "ABORTED");
    assert_eq!(model.finish(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_file_has_a_limit() {
    let model = waiting_for("/nowhere/at/all".as_ref());
    let error = refused(&model).await;
    assert_eq!(
        (error.code.as_str(), error.retry),
        ("SCRIPT_TIMEOUT", Retry::Never)
    );
    let expected = "script test: turns[0] waited 60 s for /nowhere/at/all, which never came";
    assert_eq!(error.message, expected);
    assert_eq!(model.finish().unwrap_err().to_string(), expected);
}

#[tokio::test]
async fn callers_that_share_a_script_take_turns() {
    let model = Arc::new(script(
        r#"{"turns": [{"text": "1"}, {"text": "2"}, {"text": "3"}]}"#,
    ));
    let (one, other) = (model.clone(), model.clone());
    let mut said = Vec::new();
    for caller in [&one, &other, &one] {
        said.extend(answer(&**caller).await.content);
    }
    assert_eq!(said, ["1", "2", "3"].map(text));
}
