//! What counts as told, and what is told again.

use crate::client::{Client, Probe, core, gate, open_gate, texts};
use dsh_agent::{Notice, NoticeKey};
use dsh_agent_core::Config;
use dsh_llm::ContentBlock;
use dsh_session::{Message, MessageSource};
use dsh_testkit::eventually;
use serde_json::json;

/// A notice by hand, so that a test decides when it is pending.
fn notice(key: &str) -> Notice {
    let source = MessageSource::Plugin {
        plugin: "test".into(),
        form: "notice".into(),
        summary: key.into(),
        subjects: Vec::new(),
    };
    Notice {
        key: NoticeKey::new(key),
        message: Message {
            content: vec![ContentBlock::text(key)],
            source,
        },
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_nobody_read_is_told_once_with_the_next_result_of_any_tool() {
    let mut client = Client::default().await;
    // Gated, so that the end is not told with the acknowledgement of the start already.
    let scratch = tempfile::tempdir().unwrap();
    let command = format!("{}; echo built; exit 3", gate(scratch.path()));
    let task = client.background(&command).await;
    open_gate(scratch.path());
    let told = client.until_told().await;
    assert_eq!(told.len(), 2);
    let expected = format!(
        "\nbackground task {task} (bash: {command}) finished [status: completed, exit code: 3]. \
         Read its output with task_output."
    );
    assert!(told[1].starts_with(&expected), "{told:?}");
    assert_eq!(client.bash("true").await.len(), 1, "told once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_ends_come_as_one_block() {
    let core = core(Config::default());
    let probe = Probe::offer(&core, "probe", "ok");
    probe.gate.open();
    let mut client = Client::connected(core).await;
    client.call("probe", json!({})).await;
    let inbox = probe.caller();
    inbox.inbox().inject(notice("one"));
    inbox.inbox().inject(notice("two"));
    assert_eq!(client.call("probe", json!({})).await, ["ok", "\none\ntwo"]);
    assert_eq!(client.call("probe", json!({})).await, ["ok"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_call_carries_notices_too_and_a_protocol_error_does_not() {
    let core = core(Config::default());
    let probe = Probe::offer(&core, "probe", "ok");
    probe.gate.open();
    let mut client = Client::connected(core).await;
    client.call("probe", json!({})).await;
    probe.caller().inbox().inject(notice("one"));
    let id = client.request("tools/call", json!({})).await;
    assert_eq!(client.answer(id).await["error"]["code"], -32602);
    let id = client
        .start_call("task_output", json!({"task_id": "bash-9"}))
        .await;
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(texts(&answer), ["Error: unknown task bash-9", "\none"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_tells_the_end_never_carries_its_notice() {
    let mut client = Client::default().await;
    let task = client.background("echo done").await;
    let told = client
        .call("task_output", json!({"task_id": task, "wait": true}))
        .await;
    assert_eq!(told, ["done\n[status: completed, exit code: 0]"]);
    for _ in 0..3 {
        assert_eq!(client.bash("true").await.len(), 1);
    }
    let killed = client.background("sleep 600").await;
    client.call("task_kill", json!({"task_id": killed})).await;
    let told = client
        .call("task_output", json!({"task_id": killed, "wait": true}))
        .await;
    assert_eq!(told, ["(no new output)\n[status: killed, signal: SIGTERM]"]);
    assert_eq!(client.bash("true").await.len(), 1);
    client.close_input();
    client.served().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_wait_leaves_the_task_alive_and_its_end_untold() {
    let scratch = tempfile::tempdir().unwrap();
    let mut client = Client::default().await;
    let task = client.background(&gate(scratch.path())).await;
    let wait = client
        .start_call("task_output", json!({"task_id": task, "wait": true}))
        .await;
    client.settle().await;
    client.cancel(wait).await;
    client.settle().await;
    assert!(!client.has_answer(wait));
    assert!(client.call("task_list", json!({})).await[0].starts_with(&format!("{task} [bash] running")));
    open_gate(scratch.path());
    let told = client.until_told().await;
    assert!(told[1].contains(&format!("background task {task} ")), "{told:?}");
}

/// A client that does not read holds the writer up inside a big answer; what is cancelled behind it is not written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_cancelled_while_it_is_queued_is_neither_written_nor_told() {
    let core = core(Config::default());
    let big = Probe::offer(&core, "big", "x".repeat(100_000));
    let small = Probe::offer(&core, "small", "small");
    big.gate.open();
    small.gate.open();
    let mut client = Client::connected_with(core, 1024).await;
    client.call("big", json!({})).await;
    let agent = big.caller();
    agent.inbox().inject(notice("first"));
    let blocked = client.start_call("big", json!({})).await;
    eventually("the writer to be inside the big answer", || {
        agent.inbox().pending() == 0
    })
    .await;
    let queued = client.start_call("small", json!({})).await;
    small.entered.opened().await;
    agent.inbox().inject(notice("second"));
    client.cancel(queued).await;
    eventually("the queued answer to be abandoned", || small.abandoned() == 1).await;
    assert_eq!(texts(&client.answer(blocked).await)[1], "\nfirst");
    assert_eq!(client.call("small", json!({})).await, ["small", "\nsecond"]);
    assert!(!client.has_answer(queued));
    eventually("the last answer to be delivered", || small.delivered() == 1).await;
    assert_eq!((big.delivered(), big.abandoned(), small.abandoned()), (2, 0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_cancelled_in_the_middle_of_its_write_told_nothing() {
    let core = core(Config::default());
    let big = Probe::offer(&core, "big", "x".repeat(100_000));
    big.gate.open();
    let mut client = Client::connected_with(core, 1024).await;
    client.call("big", json!({})).await;
    let agent = big.caller();
    agent.inbox().inject(notice("told with the answer that counts"));
    let cut = client.start_call("big", json!({})).await;
    eventually("the notice to be leased by the write", || {
        agent.inbox().pending() == 0
    })
    .await;
    client.cancel(cut).await;
    eventually("the delivery to be abandoned", || big.abandoned() == 1).await;
    // The line goes out whole: half a line would break every line after it.
    let answer = client.answer(cut).await;
    assert_eq!(texts(&answer).len(), 2);
    eventually("the notice to be pending again", || agent.inbox().pending() == 1).await;
    let texts = client.call("big", json!({})).await;
    assert_eq!(texts[1], "\ntold with the answer that counts");
    eventually("the last answer to be delivered", || big.delivered() == 2).await;
    assert_eq!(big.abandoned(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_after_the_answer_takes_nothing_back_and_the_resource_has_it_all() {
    let mut client = Client::default().await;
    let task = client.background("echo once").await;
    let args = json!({"task_id": task, "wait": true});
    let wait = client.start_call("task_output", args.clone()).await;
    let told = texts(&client.answer(wait).await);
    assert_eq!(told, ["once\n[status: completed, exit code: 0]"]);
    // The writer may not be back from its write yet: any later answer is written after that.
    client.call("task_list", json!({})).await;
    client.cancel(wait).await;
    assert_eq!(
        client.call("task_output", args).await,
        ["(no new output)\n[status: completed, exit code: 0]"]
    );
    let uri = format!("dsh://task/{task}");
    let read = client.request("resources/read", json!({"uri": uri})).await;
    let answer = client.answer(read).await;
    let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("once\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_written_was_not_told() {
    let core = core(Config::default());
    let big = Probe::offer(&core, "big", "x".repeat(100_000));
    big.gate.open();
    let mut client = Client::connected_with(core, 1024).await;
    client.call("big", json!({})).await;
    let agent = big.caller();
    agent.inbox().inject(notice("never told"));
    client.start_call("big", json!({})).await;
    eventually("the write to begin", || agent.inbox().pending() == 0).await;
    client.close_output();
    assert_eq!(client.served().await, dsh_mcp::Served::OutputFailed);
    assert_eq!((big.delivered(), big.abandoned()), (1, 1));
    assert_eq!(agent.inbox().pending(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_end_of_input_nothing_is_told_any_more() {
    let core = core(Config::default());
    let probe = Probe::offer(&core, "probe", "ok");
    let mut client = Client::connected(core).await;
    let id = client.start_call("probe", json!({})).await;
    probe.entered.opened().await;
    let agent = probe.caller();
    agent.inbox().inject(notice("never told"));
    client.close_input();
    // The client may still read: the call is answered, but the answer counts for nothing.
    let rest = client.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(
        (&rest[0]["id"], texts(&rest[0])),
        (&json!(id), vec!["Error: tool call aborted".to_owned()])
    );
    assert_eq!(client.served().await, dsh_mcp::Served::InputEnded);
    assert_eq!((probe.delivered(), probe.abandoned()), (0, 1));
    assert_eq!(agent.inbox().pending(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_is_used_again_after_a_cancellation_gets_its_own_answer() {
    let core = core(Config::default());
    let slow = Probe::offer(&core, "slow", "slow");
    let fast = Probe::offer(&core, "fast", "fast");
    fast.gate.open();
    let mut client = Client::connected(core).await;
    for _ in 0..20 {
        let params = |name: &str| json!({"name": name, "arguments": {}});
        let request = |name: &str| json!({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": params(name)});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "same"}});
        let lines = format!("{}\n{cancel}\n{}\n", request("slow"), request("fast"));
        client.send_bytes(lines.as_bytes()).await;
        let answer = client.next().await;
        assert_eq!(
            (&answer["id"], texts(&answer)),
            (&json!("same"), vec!["fast".to_owned()])
        );
    }
    eventually("the last answer to be delivered", || fast.delivered() == 20).await;
    assert_eq!(slow.delivered(), 0);
}
