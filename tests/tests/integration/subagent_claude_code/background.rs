//! A product that has work in the background when it has given its answer.

use dsh_testkit::process::{is_gone, read_pid};
use serde_json::json;
use tests::product::claude;
use tests::{Product, Turn};

use super::{NEWER, Parent, PermissionMode, result, run};

#[tokio::test]
async fn s238_an_answer_that_follows_background_work_is_the_answer() {
    let waits = "until [ -e go ]; do sleep 0.05; done; echo done > made";
    let background = json!({"command": waits, "description": "wait", "run_in_background": true});
    let product = Product::claude([
        Turn::Call("Bash".to_owned(), background),
        Turn::text("first"),
        Turn::text("second"),
    ])
    .await;
    let parent = Parent::of(product, "claude-code", PermissionMode::BypassPermissions);
    let run = parent.start("claude-code").await.expect("it starts");
    parent.product.model.asked(2).await;
    parent.product.room.go();
    let result = result(&run).await;
    assert_eq!((result.text().as_str(), result.output.len()), ("second", 1));
    assert!(parent.product.room.file("made").exists());
    assert_eq!(parent.product.model.requests().len(), 3);
    parent.gone(&run).await;
}

/// One version ends it five seconds after the last turn, and the other one at its own limit of time, of which the model is
/// told in a further turn.
#[tokio::test]
async fn s238_background_work_without_an_end_ends_with_the_run_and_is_told() {
    let background = json!({
        "command": "echo $$ > shell; sleep 600", "description": "wait", "run_in_background": true, "timeout": 3000
    });
    let mut turns = vec![Turn::Call("Bash".to_owned(), background), Turn::text("first")];
    let expected = if claude::version() < NEWER {
        "first\n[1 background task of Claude Code was ended with its run]"
    } else {
        turns.push(Turn::text("second"));
        "second"
    };
    let asked = turns.len();
    let (parent, result) = run(PermissionMode::BypassPermissions, turns).await;
    assert_eq!(result.text(), expected);
    let shell = read_pid(&parent.product.room.file("shell")).expect("it ran");
    assert!(is_gone(shell));
    let requests = parent.product.model.requests();
    assert_eq!(requests.len(), asked);
    let told = requests[asked - 1].body["messages"].to_string();
    assert_eq!(
        told.contains("stopped after reaching its background time limit"),
        asked == 3,
        "{told}"
    );
}
