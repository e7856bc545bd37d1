//! Cancelled, and disposed.

use dsh_subagent::{RunResult, StopReason};
use dsh_testkit::eventually;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::played::Room;

#[tokio::test]
async fn s188_a_cancelled_run_is_aborted_at_once_and_its_turn_interrupted() {
    // Its question is answered when all before it was heard.
    let asks = r#"{"id":7,"method":"item/tool/requestUserInput","params":{"threadId":"thread-1","turnId":"turn-1"}}"#;
    let room = Room::new(&format!(
        "begin; message 'so far'; say '{asks}'; hear; echo > said; listen; echo > closed; sleep 600"
    ));
    let token = CancellationToken::new();
    let started = room.subagents.start("codex", room.request(&token)).await;
    let run = started.expect("it starts");
    room.made("said").await;
    token.cancel();
    let result = run.result().await.expect("a result");
    assert_eq!(
        (result.text(), &result.stop, &result.diagnostic),
        ("so far".to_owned(), &StopReason::Aborted, &None)
    );
    room.made("closed").await;
    assert_eq!(
        room.heard()[5],
        json!({"jsonrpc": "2.0", "id": 4, "method": "turn/interrupt", "params": {
            "threadId": "thread-1", "turnId": "turn-1"
        }})
    );
    assert!(!room.is_empty(), "only the release ends it");
    run.dispose().await.expect("nothing is left");
    room.assert_empty();
}

#[tokio::test]
async fn s188_an_app_server_that_does_not_read_holds_no_abort() {
    let room = Room::new("greet; echo > greeted; sleep 600");
    let token = CancellationToken::new();
    let mut request = room.request(&token);
    // More than a pipe holds.
    request.prompt = vec![dsh_llm::ContentBlock::text("x".repeat(1 << 20))];
    let run = room.subagents.start("codex", request).await.expect("it starts");
    room.made("greeted").await;
    token.cancel();
    assert_eq!(run.result().await.expect("a result"), RunResult::aborted());
    run.dispose().await.expect("nothing is left");
    room.assert_empty();
}

#[tokio::test]
async fn s188_a_run_that_was_cancelled_is_aborted_even_with_an_answer() {
    let room = Room::new("begin; message done; completed; echo > said; listen");
    let token = CancellationToken::new();
    let started = room.subagents.start("codex", room.request(&token)).await;
    let run = started.expect("it starts");
    room.hold_until_made("said");
    token.cancel();
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    run.dispose().await.expect("nothing is left");
}

#[tokio::test]
async fn s203_disposed_is_gone_and_not_before() {
    // A child of it does not listen until it may.
    let script = "(trap '' TERM; echo > ready; until [ -e go ]; do sleep 0.01; done) & begin; listen";
    let room = Room::new(script);
    let run = room.start().await;
    room.made("ready").await;
    let disposal = run.dispose();
    tokio::pin!(disposal);
    let leader = room.file("pid");
    let leader_gone = || dsh_testkit::process::read_pid(&leader).is_some_and(dsh_testkit::process::is_gone);
    tokio::select! {
        biased;
        disposed = &mut disposal => panic!("its child lives: {disposed:?}"),
        () = eventually("the app server to go", leader_gone) => {}
    }
    assert!(!room.is_empty());
    room.make("go");
    disposal.await.expect("nothing is left");
    room.assert_empty();
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
}

#[tokio::test]
async fn s202_the_end_of_the_parent_is_the_end_of_the_run() {
    let room = Room::new("begin; sleep 600 & listen");
    let run = room.start().await;
    room.parent.dispose().await.expect("it goes");
    room.assert_empty();
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    run.dispose().await.expect("nothing is left");
}

#[tokio::test]
async fn s202_what_it_writes_in_the_end_holds_no_release() {
    // More than a pipe holds, to both of its pipes, before it goes.
    let flood = "head -c 300000 /dev/zero | tr '\\0' x";
    let room = Room::new(&format!(
        "trap '{flood}; {flood} >&2; echo > flooded; exit 0' TERM; begin; while :; do sleep 0.01; done"
    ));
    let run = room.start().await;
    eventually("the turn to begin", || {
        room.methods().contains(&"turn/start".to_owned())
    })
    .await;
    run.dispose().await.expect("nothing is left");
    assert!(room.file("flooded").exists(), "it was killed while it wrote");
    room.assert_empty();
}
