//! Tasks as resources: looked at, not consumed.

use std::time::{Duration, Instant};

use crate::client::{Client, core, gate, open_gate, texts};
use dsh_agent_core::{AgentCore, Config};
use dsh_tasks::{Outcome, StartSpec, Work};
use serde_json::{Value, json};

async fn read(client: &mut Client, uri: &str) -> Value {
    let id = client.request("resources/read", json!({"uri": uri})).await;
    client.answer(id).await
}

async fn text(client: &mut Client, uri: &str) -> String {
    let answer = read(client, uri).await;
    let content = &answer["result"]["contents"][0];
    assert_eq!(
        (&content["uri"], &content["mimeType"]),
        (&json!(uri), &json!("text/plain")),
        "{answer}"
    );
    content["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_task_is_a_resource() {
    let mut client = Client::default().await;
    let list = async |client: &mut Client| {
        let id = client.request("resources/list", json!({})).await;
        client.answer(id).await["result"]["resources"].clone()
    };
    assert_eq!(list(&mut client).await, json!([]));
    let task = client.background("sleep 600 # serve").await;
    let uri = format!("dsh://task/{task}");
    let expected =
        json!([{"uri": uri, "name": task, "title": "sleep 600 # serve", "mimeType": "text/plain"}]);
    assert_eq!(list(&mut client).await, expected);
    let id = client.request("resources/templates/list", json!({})).await;
    let templates = client.answer(id).await["result"]["resourceTemplates"].clone();
    assert_eq!(templates[0]["uriTemplate"], "dsh://task/{id}");
    client.close_input();
    client.served().await;
}

async fn page(client: &mut Client, params: Value) -> (Vec<String>, Value) {
    let id = client.request("resources/list", params).await;
    let result = client.answer(id).await["result"].clone();
    let names = result["resources"].as_array().unwrap().iter();
    let names = names.map(|entry| entry["name"].as_str().unwrap().to_owned());
    (names.collect(), result["nextCursor"].clone())
}

fn start_and_end(core: &AgentCore, count: usize) {
    for _ in 0..count {
        let run = || Ok(Work::new(async { Outcome::completed() }, |_| Ok(())));
        core.context()
            .tasks
            .start(StartSpec::new("work", "short", run))
            .unwrap();
    }
}

#[tokio::test]
async fn a_long_list_comes_in_pages_with_the_newest_last() {
    let mut config = Config::default();
    config.tasks.max_concurrent_tasks_per_owner = 1000;
    config.tasks.retained_unowned = 1000;
    let core = core(config);
    let mut client = Client::connected(core.clone()).await;
    start_and_end(&core, 100);
    assert_eq!(
        page(&mut client, json!({})).await.1,
        Value::Null,
        "all on one page"
    );
    start_and_end(&core, 100);
    let (mut listed, mut cursor) = page(&mut client, json!({})).await;
    // What comes meanwhile moves no entry to another page.
    start_and_end(&core, 1);
    let mut sizes = vec![listed.len()];
    while !cursor.is_null() && sizes.len() < 10 {
        let (names, next) = page(&mut client, json!({"cursor": cursor})).await;
        sizes.push(names.len());
        listed.extend(names);
        cursor = next;
    }
    assert_eq!(sizes, [100, 100, 1]);
    let started: Vec<_> = (1..=201).map(|n| format!("work-{n}")).collect();
    assert_eq!(listed, started);
}

#[tokio::test]
async fn a_cursor_that_was_never_given_is_refused() {
    let core = core(Config::default());
    let mut client = Client::connected(core.clone()).await;
    let mut other = Client::connected(core).await;
    let task = other.background("sleep 600").await;
    for cursor in ["", "2", "dsh://task/bash-99", &format!("dsh://task/{task}")] {
        let id = client.request("resources/list", json!({"cursor": cursor})).await;
        let answer = client.answer(id).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let reason = format!("no page begins at cursor {cursor}: ask for the first page, without a cursor");
        assert_eq!(answer["error"]["message"], reason);
    }
    other.close_input();
    other.served().await;
}

#[tokio::test]
async fn reading_one_consumes_nothing_and_tells_nobody() {
    let mut client = Client::default().await;
    // Gated, so that the end is not told with the acknowledgement of the start already.
    let scratch = tempfile::tempdir().unwrap();
    let command = format!("{}; echo one; exit 4", gate(scratch.path()));
    let task = client.background(&command).await;
    open_gate(scratch.path());
    let uri = format!("dsh://task/{task}");
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut ended = text(&mut client, &uri).await;
    while !ended.contains("completed") && Instant::now() < deadline {
        ended = text(&mut client, &uri).await;
    }
    assert_eq!(ended, "one\n[status: completed, exit code: 4]");
    assert_eq!(text(&mut client, &uri).await, ended, "it can be read again");
    let told = client.until_told().await;
    assert!(
        told[1].contains(&format!("background task {task} ")),
        "the end is still to be told: {told:?}"
    );
    let output = client.call("task_output", json!({"task_id": task})).await;
    assert_eq!(
        output,
        ["one\n[status: completed, exit code: 4]"],
        "the output is still to be read"
    );
}

#[tokio::test]
async fn a_long_output_shows_its_end() {
    let mut client = Client::default().await;
    let task = client.background("seq 1 200000; echo THE END").await;
    client
        .call("task_output", json!({"task_id": task, "wait": true}))
        .await;
    let text = text(&mut client, &format!("dsh://task/{task}")).await;
    assert!(text.len() < 300_000, "{}", text.len());
    assert!(text.ends_with("\nTHE END\n[status: completed, exit code: 0]"));
}

#[tokio::test]
async fn what_is_no_task_of_mine_is_not_found() {
    let core = core(Config::default());
    let mut client = Client::connected(core.clone()).await;
    let mut other = Client::connected(core).await;
    let task = other.background("sleep 600").await;
    let cases = [
        ("dsh://task/bash-99".to_owned(), "unknown task bash-99".to_owned()),
        (
            format!("dsh://task/{task}"),
            format!("task {task} belongs to another session"),
        ),
        (
            "file:///etc/passwd".to_owned(),
            "no resource file:///etc/passwd".to_owned(),
        ),
    ];
    for (uri, reason) in cases {
        let answer = read(&mut client, &uri).await;
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
        assert!(
            answer["error"]["message"].as_str().unwrap().starts_with(&reason),
            "{answer}"
        );
        let id = client.request("resources/subscribe", json!({"uri": uri})).await;
        assert_eq!(client.answer(id).await["error"]["code"], -32002);
    }
    client.close_input();
    client.served().await;
    other.close_input();
    other.served().await;
}

#[tokio::test]
async fn a_client_is_told_when_tasks_come_and_when_its_own_choice_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (more, end) = (dir.path().join("more"), dir.path().join("end"));
    let await_file = |file: &std::path::Path| format!("until [ -e {} ]; do sleep 0.02; done", file.display());
    let mut client = Client::default().await;
    let task = client
        .background(&format!("{}; echo more; {}", await_file(&more), await_file(&end)))
        .await;
    client.notification("notifications/resources/list_changed").await;
    let uri = format!("dsh://task/{task}");
    let id = client.request("resources/subscribe", json!({"uri": uri})).await;
    assert!(client.answer(id).await["error"].is_null());

    std::fs::write(&more, "").unwrap();
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], uri, "new output");
    assert_eq!(text(&mut client, &uri).await, "more\n[status: running]");

    std::fs::write(&end, "").unwrap();
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], uri, "the end");

    let other = client.background("true").await;
    client
        .call("task_output", json!({"task_id": other, "wait": true}))
        .await;
    client.settle().await;
    let updates = client
        .notifications
        .iter()
        .filter(|notice| notice["method"].as_str().unwrap().ends_with("updated"));
    assert!(
        updates.clone().all(|notice| notice["params"]["uri"] == uri),
        "only of what it subscribed to"
    );
}

#[tokio::test]
async fn an_unsubscribed_client_is_told_no_more() {
    let mut client = Client::default().await;
    let task = client.background("sleep 600").await;
    let uri = format!("dsh://task/{task}");
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let id = client.request(method, json!({"uri": uri})).await;
        assert!(client.answer(id).await["error"].is_null());
    }
    client.call("task_kill", json!({"task_id": task})).await;
    client
        .call("task_output", json!({"task_id": task, "wait": true}))
        .await;
    // A second task proves that the watcher has looked since.
    client.notification("notifications/resources/list_changed").await;
    client.background("true").await;
    client.notification("notifications/resources/list_changed").await;
    assert!(
        client
            .notifications
            .iter()
            .all(|notice| notice["method"] != "notifications/resources/updated")
    );
    client.close_input();
    client.served().await;
}

/// What every request of a client without `initialize` carries.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[tokio::test]
async fn a_client_without_initialize_calls_tools_and_listens() {
    let mut client = Client::silent(core(Config::default()), 1 << 20);
    let args = json!({"command": "sleep 600", "description": "test", "run_in_background": true});
    let id = client
        .request(
            "tools/call",
            json!({"name": "bash", "arguments": args, "_meta": meta()}),
        )
        .await;
    let answer = client.answer(id).await;
    assert_eq!(texts(&answer), ["started background task bash-1"]);

    let filter = json!({"resourcesListChanged": true, "resourceSubscriptions": ["dsh://task/bash-1"]});
    let listen = client
        .request(
            "subscriptions/listen",
            json!({"notifications": filter, "_meta": meta()}),
        )
        .await;
    let acknowledged = client
        .notification("notifications/subscriptions/acknowledged")
        .await;
    let subscription =
        |notice: &Value| notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    assert_eq!(
        subscription(&acknowledged),
        json!(listen),
        "known by the client's own id"
    );

    let kill = json!({"name": "task_kill", "arguments": {"task_id": "bash-1"}, "_meta": meta()});
    let id = client.request("tools/call", kill).await;
    client.answer(id).await;
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(
        (&updated["params"]["uri"], subscription(&updated)),
        (&json!("dsh://task/bash-1"), json!(listen))
    );

    client.cancel(listen).await;
    client.close_input();
    let rest = client.rest().await;
    assert!(
        rest.iter().all(|message| message["id"] != json!(listen)),
        "a cancelled request has no answer"
    );
    client.close_input();
    client.served().await;
}
