//! What is said of a product that failed, to whoever waits for it and as the end of a task.

use expect_test::{Expect, expect};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tests::product::subagent::Freedom;
use tests::{Product, Turn};

use super::{Delegating, start};

/// What a model server says of itself is not passed on.
fn refused() -> Turn {
    Turn::Error(400, "SECRET_TOKEN in /private/secret.txt".to_owned())
}

/// A product that says its turns twice fails twice, and tells the same of it.
async fn fails(product: Product, expected: Expect) -> Delegating {
    let mut delegating = Delegating::to(product, Freedom::Default).await;
    let mut told = format!("{}\n", delegating.foreground().await.error());
    delegating.background().await;
    told += delegating.collected().await.ok();
    expected.assert_eq(&told);
    delegating
}

#[tokio::test]
async fn codex_whose_model_fails_is_told_without_its_words() {
    let product = Product::codex([refused(), refused()]).await;
    fails(product, expect![[r#"
        Error: subagent run failed
        Diagnostic: Product subagent failure (product: Codex; stage: turn; category: other)
        (no new output)
        [status: failed, error; diagnostic: Product subagent failure (product: Codex; stage: turn; category: other)]"#]]).await.close().await;
}

#[tokio::test]
async fn claude_whose_model_fails_is_told_without_its_words() {
    let product = Product::claude([refused(), refused()]).await;
    fails(product, expect![[r#"
        Error: subagent run failed
        Diagnostic: Product subagent failure (product: Claude Code; stage: query-run; category: invalid-success; HTTP status: 400)
        (no new output)
        [status: failed, error; diagnostic: Product subagent failure (product: Claude Code; stage: query-run; category: invalid-success; HTTP status: 400)]"#]]).await.close().await;
}

#[tokio::test]
async fn codex_that_was_denied_a_command_says_so() {
    let command = json!({
        "cmd": "echo SECRET_TOKEN > forbidden", "sandbox_permissions": "require_escalated", "justification": "x"
    });
    let denied = Turn::Call("exec_command".to_owned(), command);
    let product = Product::codex([denied.clone(), refused(), denied, refused()]).await;
    let delegating = fails(product, expect![[r#"
        Error: subagent run failed
        Diagnostic: Product subagent failure (product: Codex; stage: turn; category: other)
        Codex unattended decision (mode: never; request: command execution; decision: denied): Codex rejected an escalation because the selected policy never asks for approval
        (no new output)
        [status: failed, error; diagnostic: Product subagent failure (product: Codex; stage: turn; category: other) Codex unattended decision (mode: never; request: command execution; decision: denied): Codex rejected an escalation because the selected policy never asks for approval]"#]]).await;
    assert!(!delegating.server.room.file("forbidden").exists());
    delegating.close().await;
}

#[tokio::test]
async fn claude_that_was_denied_a_command_says_so() {
    let denied = Turn::shell("echo SECRET_TOKEN > forbidden");
    let product = Product::claude([denied.clone(), refused(), denied, refused()]).await;
    let delegating = fails(product, expect![[r#"
        Error: subagent run failed
        Diagnostic: Product subagent failure (product: Claude Code; stage: query-run; category: invalid-success; HTTP status: 400)
        Claude Code unattended decision (mode: dontAsk; request: tool permission; decision: denied): Claude Code denied the request before an interactive prompt
        (no new output)
        [status: failed, error; diagnostic: Product subagent failure (product: Claude Code; stage: query-run; category: invalid-success; HTTP status: 400) Claude Code unattended decision (mode: dontAsk; request: tool permission; decision: denied): Claude Code denied the request before an interactive prompt]"#]]).await;
    assert!(!delegating.server.room.file("forbidden").exists());
    delegating.close().await;
}

/// Ends the product in its turn; it is the first of its processes.
async fn ends_in_its_turn(product: Product, expected: Expect) {
    let mut delegating = Delegating::to(product, Freedom::Default).await;
    let product = &delegating.product;
    let call = delegating.server.send_call(product.tool(), super::task()).await;
    product.model.asked(1).await;
    end(product);
    let mut told = format!("{}\n", delegating.server.reply(call).await.error());
    start(&mut delegating.server, product, "subagent-1").await;
    product.model.asked(2).await;
    end(product);
    told += delegating.collected().await.ok();
    expected.assert_eq(&told);
    delegating.close().await;
}

fn end(product: &Product) {
    let is_it = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == product.program())
    };
    let leader = product.room.processes().into_iter().find(is_it).expect("it runs");
    kill(Pid::from_raw(leader.cast_signed()), Signal::SIGKILL).expect("it runs");
}

#[tokio::test]
async fn codex_that_was_killed_by_somebody_has_failed() {
    ends_in_its_turn(
        Product::codex([Turn::silence(), Turn::silence()]).await,
        expect![[r#"
            Error: subagent run failed
            Diagnostic: Product subagent failure (product: Codex; stage: process; category: process-exit; signal: SIGKILL)
            (no new output)
            [status: failed, error; diagnostic: Product subagent failure (product: Codex; stage: process; category: process-exit; signal: SIGKILL)]"#]],
    )
    .await;
}

#[tokio::test]
async fn claude_that_was_killed_by_somebody_has_failed() {
    ends_in_its_turn(
        Product::claude([Turn::silence(), Turn::silence()]).await,
        expect![[r#"
            Error: subagent run failed
            Diagnostic: Product subagent failure (product: Claude Code; stage: process; category: process-exit; signal: SIGKILL)
            (no new output)
            [status: failed, error; diagnostic: Product subagent failure (product: Claude Code; stage: process; category: process-exit; signal: SIGKILL)]"#]],
    )
    .await;
}
