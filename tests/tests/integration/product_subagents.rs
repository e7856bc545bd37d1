//! Products as subagents of the real `dsh`, with scripted models: what a client of `dsh mcp` and the model of `dsh run` see
//! of them, and that nothing of them is left, whoever ends first.

mod acp;
mod failures;
mod run;

use std::time::Duration;

use dsh_testkit::process::is_gone;
use dsh_testkit::{Gate, eventually_within};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::product::subagent::{Freedom, PRESET, mount};
use tests::{Exit, Product, Reply, Room, Server, ServerOptions, Turn};

/// What the model of a product has run: a child in a session of its own, a daemon of two forks, and then nothing for long.
const TOOL: &str = "\
setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! > session
(setsid bash -c 'sleep 600 & echo $! > daemon' >/dev/null 2>&1 </dev/null &)
echo $$ > shell; sleep 600";

/// Where its processes write who they are.
const FILES: [&str; 3] = ["session", "daemon", "shell"];

/// The same child, left behind by its shell once it is on its own: before, a terminal that hangs up would end it.
const LEAVES: &str = "\
setsid bash -c 'echo $$ > session; exec sleep 600' >/dev/null 2>&1 </dev/null &
until [ -s session ]; do sleep 0.02; done";

/// How soon nothing is left of what has to go: its grace, and what a busy machine adds.
const SOON: Duration = Duration::from_secs(5);

/// The longest that a product may take to end by itself, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(60);

/// A task for a product.
fn task() -> Value {
    json!({"description": "the label", "prompt": "the very task"})
}

fn in_background() -> Value {
    let mut task = task();
    task["run_in_background"] = json!(true);
    task
}

/// Waits until nothing of a product is left that has no more to do.
async fn gone_soon(product: &Product) {
    eventually_within("the product to go", SOON, || product.room.processes().is_empty()).await;
}

/// `dsh mcp`, and a product that its client can delegate to.
struct Delegating {
    server: Server,
    product: Product,
}

impl Delegating {
    async fn to(product: Product, freedom: Freedom) -> Delegating {
        let server = serve(&[(&product, freedom)]).await;
        Delegating { server, product }
    }

    /// A task in the foreground, from its call to its end: nothing of the product is left by then.
    async fn foreground(&mut self) -> Reply {
        let reply = self.server.call(self.product.tool(), task()).await;
        self.product.assert_clean();
        reply
    }

    /// The first task in the background.
    async fn background(&mut self) {
        start(&mut self.server, &self.product, "subagent-1").await;
    }

    /// The first task when it is over: nothing of the product is left by then.
    async fn collected(&mut self) -> Reply {
        let reply = self.server.wait("subagent-1").await;
        self.product.assert_clean();
        reply
    }

    /// Starts a task of which every process is known, and returns those of its tool.
    async fn in_a_tool_call(&mut self) -> Vec<u32> {
        self.background().await;
        self.product.model.asked(1).await;
        let mut tool = Vec::new();
        for file in FILES {
            tool.push(self.server.room.pid(file).await);
        }
        assert!(!tool.iter().any(|pid| is_gone(*pid)));
        tool
    }

    /// The server was a good server all the time.
    async fn close(self) {
        self.server.close().await;
        self.product.assert_clean();
    }
}

async fn serve(products: &[(&Product, Freedom)]) -> Server {
    let room = Room::new();
    mount(&room, products);
    let work = room.work();
    let options = ServerOptions {
        arguments: &PRESET,
        ..ServerOptions::default()
    };
    let mut server = Server::spawn(room, &work, options);
    server.shake_hands().await;
    server
}

async fn start(server: &mut Server, product: &Product, id: &str) {
    let started = server.call(product.tool(), in_background()).await;
    assert_eq!(started.texts, [format!("started background subagent task {id}")]);
}

fn tool_call() -> [Turn; 2] {
    [Turn::shell(TOOL), Turn::silence()]
}

async fn answers(product: Product) {
    let mut delegating = Delegating::to(product, Freedom::Default).await;
    let reply = delegating.foreground().await;
    assert_eq!(reply.ok(), "the answer");
    assert_eq!(reply.texts.len(), 1);
    let requests = delegating.product.model.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].body.to_string().contains(r#""text":"the very task""#));
    delegating.close().await;
}

#[tokio::test]
async fn codex_answers_in_the_foreground() {
    answers(Product::codex([Turn::text("the answer")]).await).await;
}

#[tokio::test]
async fn claude_answers_in_the_foreground() {
    answers(Product::claude([Turn::text("the answer")]).await).await;
}

/// While its model is silent it is listed and waited for; then its answer comes to whoever waits, and as no notice.
async fn collected(product: Product, gate: Gate) {
    let mut delegating = Delegating::to(product, Freedom::Default).await;
    delegating.background().await;
    delegating.product.model.asked(1).await;
    let row = delegating.server.list().await;
    assert_eq!(row.ok(), "subagent-1 [subagent] running — the label");
    let waiting = json!({"task_id": "subagent-1", "wait": true, "timeout_ms": 60000});
    let waiting = delegating.server.send_call("task_output", waiting).await;
    let now = delegating.server.output("subagent-1").await;
    assert_eq!(now.ok(), "(no new output)\n[status: running]");
    assert!(!delegating.product.room.processes().is_empty());
    assert!(!delegating.server.has_answered(waiting));

    gate.open();
    let reply = delegating.server.reply(waiting).await;
    delegating.product.assert_clean();
    assert_eq!(reply.texts, ["the answer\n[status: completed]"]);
    let later = delegating.server.list().await;
    assert_eq!(later.texts, ["subagent-1 [subagent] completed — the label"]);
    delegating.close().await;
}

#[tokio::test]
async fn codex_in_the_background_is_listed_and_collected() {
    let gate = Gate::new();
    let product = Product::codex([Turn::text("the answer").held(&gate)]).await;
    collected(product, gate).await;
}

#[tokio::test]
async fn claude_in_the_background_is_listed_and_collected() {
    let gate = Gate::new();
    let product = Product::claude([Turn::text("the answer").held(&gate)]).await;
    collected(product, gate).await;
}

async fn noticed(product: Product, gate: Gate) {
    let mut delegating = Delegating::to(product, Freedom::Default).await;
    delegating.background().await;
    delegating.product.model.asked(1).await;
    gate.open();
    let room = &delegating.product.room;
    eventually_within("the product to end", LIMIT, || room.processes().is_empty()).await;
    let told = delegating.server.told_by("task_list", json!({})).await;
    assert_eq!(
        told.notices(),
        [
            "\nbackground task subagent-1 (subagent: the label) finished [status: completed]. \
             Read its output with task_output.\nlast output:\n> the answer"
        ]
    );
    delegating.product.assert_clean();
    assert_eq!(delegating.server.list().await.texts.len(), 1);
    let reply = delegating.collected().await;
    assert_eq!(reply.texts, ["the answer\n[status: completed]"]);
    delegating.close().await;
}

#[tokio::test]
async fn codex_that_nobody_waits_for_is_told_once() {
    let gate = Gate::new();
    let product = Product::codex([Turn::text("the answer").held(&gate)]).await;
    noticed(product, gate).await;
}

#[tokio::test]
async fn claude_that_nobody_waits_for_is_told_once() {
    let gate = Gate::new();
    let product = Product::claude([Turn::text("the answer").held(&gate)]).await;
    noticed(product, gate).await;
}

async fn killed(product: Product) {
    let mut delegating = Delegating::to(product, Freedom::Bypass).await;
    let tool = delegating.in_a_tool_call().await;
    let asked = delegating.server.kill("subagent-1").await;
    assert_eq!(asked.ok(), "requested cancellation of task subagent-1");
    let reply = delegating.collected().await;
    assert!(tool.iter().all(|pid| is_gone(*pid)));
    assert_eq!(reply.texts, ["(no new output)\n[status: killed]"]);
    assert_eq!(delegating.server.list().await.texts.len(), 1, "no notice");
    delegating.close().await;
}

#[tokio::test]
async fn codex_is_killed_with_every_session_of_its_tools() {
    killed(Product::codex(tool_call()).await).await;
}

#[tokio::test]
async fn claude_is_killed_with_every_session_of_its_tools() {
    killed(Product::claude(tool_call()).await).await;
}

/// What a product leaves in a session of its own lives as long as its run, and no longer.
async fn leaves_a_session(product: Product, gate: Gate) {
    let mut delegating = Delegating::to(product, Freedom::Bypass).await;
    let call = delegating
        .server
        .send_call(delegating.product.tool(), task())
        .await;
    delegating.product.model.asked(2).await;
    let left = delegating.server.room.pid("session").await;
    assert!(!is_gone(left));
    gate.open();
    let reply = delegating.server.reply(call).await;
    assert!(is_gone(left));
    delegating.product.assert_clean();
    assert_eq!(reply.ok(), "left behind");
    delegating.close().await;
}

#[tokio::test]
async fn codex_that_left_a_session_behind_leaves_nothing_after_its_answer() {
    let gate = Gate::new();
    let turns = [Turn::shell(LEAVES), Turn::text("left behind").held(&gate)];
    leaves_a_session(Product::codex(turns).await, gate).await;
}

#[tokio::test]
async fn claude_that_left_a_session_behind_leaves_nothing_after_its_answer() {
    let gate = Gate::new();
    let turns = [Turn::shell(LEAVES), Turn::text("left behind").held(&gate)];
    leaves_a_session(Product::claude(turns).await, gate).await;
}

async fn cancelled(product: Product) {
    let mut delegating = Delegating::to(product, Freedom::Default).await;
    let call = delegating
        .server
        .send_call(delegating.product.tool(), task())
        .await;
    delegating.product.model.asked(1).await;
    delegating.server.cancel(call).await;
    gone_soon(&delegating.product).await;
    assert_eq!(delegating.server.list().await.texts, ["(no background tasks)"]);
    assert!(!delegating.server.has_answered(call), "nobody wants to know");
    delegating.close().await;
}

#[tokio::test]
async fn codex_goes_with_the_call_that_is_cancelled() {
    cancelled(Product::codex([Turn::silence()]).await).await;
}

#[tokio::test]
async fn claude_goes_with_the_call_that_is_cancelled() {
    cancelled(Product::claude([Turn::silence()]).await).await;
}

/// A client that closes its end while a product works.
async fn left_by_its_client(product: Product) {
    let mut delegating = Delegating::to(product, Freedom::Bypass).await;
    delegating.in_a_tool_call().await;
    delegating.close().await;
}

#[tokio::test]
async fn codex_goes_with_the_client_of_its_server() {
    left_by_its_client(Product::codex(tool_call()).await).await;
}

#[tokio::test]
async fn claude_goes_with_the_client_of_its_server() {
    left_by_its_client(Product::claude(tool_call()).await).await;
}

async fn terminated(product: Product) {
    let mut delegating = Delegating::to(product, Freedom::Bypass).await;
    delegating.in_a_tool_call().await;
    delegating.server.signal(Signal::SIGTERM);
    let exit = delegating.server.exit().await;
    delegating.product.assert_clean();
    assert_eq!(exit, Exit::Code(143), "{}", delegating.server.log());
    delegating.server.room.assert_empty();
}

#[tokio::test]
async fn codex_goes_with_its_server_on_sigterm() {
    terminated(Product::codex(tool_call()).await).await;
}

#[tokio::test]
async fn claude_goes_with_its_server_on_sigterm() {
    terminated(Product::claude(tool_call()).await).await;
}

async fn server_killed(product: Product) {
    let mut delegating = Delegating::to(product, Freedom::Bypass).await;
    let tool = delegating.in_a_tool_call().await;
    delegating.server.signal(Signal::SIGKILL);
    gone_soon(&delegating.product).await;
    assert!(tool.iter().all(|pid| is_gone(*pid)));
    assert_eq!(delegating.server.exit().await, Exit::Signal(9));
    let room = &delegating.server.room;
    eventually_within("the guards to go", SOON, || room.processes().is_empty()).await;
}

#[tokio::test]
async fn codex_goes_when_its_server_is_killed() {
    server_killed(Product::codex(tool_call()).await).await;
}

#[tokio::test]
async fn claude_goes_when_its_server_is_killed() {
    server_killed(Product::claude(tool_call()).await).await;
}

#[tokio::test]
async fn codex_and_claude_work_side_by_side() {
    let (one, other) = (Gate::new(), Gate::new());
    let codex = Product::codex([Turn::text("of Codex").held(&one)]).await;
    let claude = Product::claude([Turn::text("of Claude Code").held(&other)]).await;
    let mut server = serve(&[(&codex, Freedom::Default), (&claude, Freedom::Default)]).await;
    start(&mut server, &codex, "subagent-1").await;
    start(&mut server, &claude, "subagent-2").await;
    tokio::join!(codex.model.asked(1), claude.model.asked(1));
    assert_eq!(
        server.list().await.ok(),
        "subagent-1 [subagent] running — the label\nsubagent-2 [subagent] running — the label"
    );

    other.open();
    let reply = server.wait("subagent-2").await;
    claude.assert_clean();
    assert_eq!(reply.texts, ["of Claude Code\n[status: completed]"]);
    assert!(!codex.room.processes().is_empty(), "the other one goes on");
    one.open();
    let reply = server.wait("subagent-1").await;
    codex.assert_clean();
    assert_eq!(reply.texts, ["of Codex\n[status: completed]"]);
    server.close().await;
}
