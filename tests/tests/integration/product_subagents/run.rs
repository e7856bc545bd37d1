//! Products as subagents of `dsh run`, whose own model is scripted, too.

use dsh_testkit::{Gate, eventually_within};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::product::subagent::{Freedom, PRESET, mount};
use tests::{Product, Ran, Room, Turn, says};

use super::{FILES, LEAVES, SOON, gone_soon, in_background, task, tool_call};

const STARTED: &str = "started background subagent task subagent-1";

/// `dsh run` in a room, whose model says `turns`, and a product that it can delegate to.
struct Parent {
    room: Room,
    product: Product,
    arguments: Vec<String>,
}

impl Parent {
    fn of(product: Product, turns: Value) -> Parent {
        let room = Room::new();
        mount(&room, &[(&product, Freedom::Bypass)]);
        let model = room.script("model.json", turns);
        let arguments = ["delegate", "--model", &model, "--output-format", "stream-json"];
        let arguments = arguments.into_iter().chain(PRESET).map(str::to_owned).collect();
        Parent {
            room,
            product,
            arguments,
        }
    }

    fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// The run to its end, after which nothing is left.
    async fn ran(&self) -> Ran {
        let ran = self.room.run(&self.arguments()).await;
        self.product.assert_clean();
        self.room.assert_empty();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    }

    /// Waits until the tool of the product runs.
    async fn in_a_tool_call(&self) {
        self.product.model.asked(1).await;
        for file in FILES {
            self.room.pid(file).await;
        }
    }
}

fn calls(tool: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": tool, "arguments": arguments}]})
}

/// Delegates in the background and rests.
fn delegates(product: &Product) -> Value {
    json!([calls(product.tool(), in_background()), says("It works.")])
}

fn results(ran: &Ran) -> Vec<String> {
    let results = ran.of_type("tool_result").into_iter();
    results
        .map(|result| result["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn answers(product: Product) {
    let turns = json!([calls(product.tool(), task()), says("Done.")]);
    let parent = Parent::of(product, turns);
    let ran = parent.ran().await;
    assert_eq!(results(&ran), ["the answer"]);
    assert_eq!(ran.of_type("result")[0]["result"], "Done.");
    assert_eq!(parent.product.model.requests().len(), 2);
    assert!(dsh_testkit::process::is_gone(parent.room.pid("session").await));
}

#[tokio::test]
async fn codex_answers_a_run_and_leaves_nothing() {
    answers(Product::codex([Turn::shell(LEAVES), Turn::text("the answer")]).await).await;
}

#[tokio::test]
async fn claude_answers_a_run_and_leaves_nothing() {
    answers(Product::claude([Turn::shell(LEAVES), Turn::text("the answer")]).await).await;
}

/// The run rests, is told of the end, and then reads the answer.
async fn noticed(product: Product, gate: Gate) {
    let mut turns = delegates(&product);
    let more = [
        calls("task_output", json!({"task_id": "subagent-1", "wait": true})),
        says("Seen."),
    ];
    turns.as_array_mut().expect("turns").extend(more);
    let parent = Parent::of(product, turns);
    let running = parent.room.running(&parent.arguments());
    running.prints("It works.").await;
    parent.product.model.asked(1).await;
    gate.open();
    let ran = running.ended().await;
    parent.product.assert_clean();
    parent.room.assert_empty();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(results(&ran), [STARTED, "the answer\n[status: completed]"]);
    let notices = ran.of_type("notice");
    assert_eq!(notices.len(), 1, "{notices:?}");
    let text = notices[0].to_string();
    assert!(
        text.contains("background task subagent-1 (subagent: the label) finished [status: completed]"),
        "{text}"
    );
}

#[tokio::test]
async fn codex_in_the_background_of_a_run_wakes_it_once() {
    let gate = Gate::new();
    noticed(Product::codex([Turn::text("the answer").held(&gate)]).await, gate).await;
}

#[tokio::test]
async fn claude_in_the_background_of_a_run_wakes_it_once() {
    let gate = Gate::new();
    noticed(
        Product::claude([Turn::text("the answer").held(&gate)]).await,
        gate,
    )
    .await;
}

/// The run kills what it has just started, maybe before the product was there.
async fn killed(product: Product) {
    let id = json!({"task_id": "subagent-1"});
    let mut wait = id.clone();
    wait["wait"] = json!(true);
    let turns = json!([
        calls(product.tool(), in_background()),
        calls("task_kill", id),
        calls("task_output", wait),
        says("Killed.")
    ]);
    let ran = Parent::of(product, turns).ran().await;
    assert_eq!(
        results(&ran),
        [
            STARTED,
            "requested cancellation of task subagent-1",
            "(no new output)\n[status: killed]"
        ]
    );
    assert_eq!(ran.of_type("notice"), [Value::Null; 0]);
}

#[tokio::test]
async fn codex_is_killed_while_it_starts() {
    killed(Product::codex([Turn::silence()]).await).await;
}

#[tokio::test]
async fn claude_is_killed_while_it_starts() {
    killed(Product::claude([Turn::silence()]).await).await;
}

async fn interrupted(product: Product, signal: Signal, code: i32) {
    let turns = json!([calls(product.tool(), task()), says("never asked")]);
    let parent = Parent::of(product, turns);
    let running = parent.room.running(&parent.arguments());
    parent.in_a_tool_call().await;
    running.signal(signal);
    let ran = running.ended().await;
    parent.product.assert_clean();
    parent.room.assert_empty();
    assert_eq!(ran.code, Some(code), "{ran:?}");
}

#[tokio::test]
async fn codex_goes_with_its_run_on_sigterm() {
    interrupted(Product::codex(tool_call()).await, Signal::SIGTERM, 143).await;
}

#[tokio::test]
async fn claude_goes_with_its_run_on_sigint() {
    interrupted(Product::claude(tool_call()).await, Signal::SIGINT, 130).await;
}

async fn run_killed(product: Product) {
    let turns = delegates(&product);
    let parent = Parent::of(product, turns);
    let running = parent.room.running(&parent.arguments());
    parent.in_a_tool_call().await;
    running.signal(Signal::SIGKILL);
    gone_soon(&parent.product).await;
    assert_eq!(running.ended().await.code, None);
    eventually_within("the guards to go", SOON, || parent.room.processes().is_empty()).await;
}

#[tokio::test]
async fn codex_goes_when_its_run_is_killed() {
    run_killed(Product::codex(tool_call()).await).await;
}

#[tokio::test]
async fn claude_goes_when_its_run_is_killed() {
    run_killed(Product::claude(tool_call()).await).await;
}
