//! What `dsh run` prints, in each format.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tests::{GATED, Ran, Room, starts};

/// Starts a task, rests, is woken by its end, reads it.
fn turns() -> Value {
    let mut start = starts(&format!("{GATED}echo built"));
    start["text"] = json!("I start it.");
    json!([
        start,
        {"text": "I wait for it."},
        {
            "expect": ["background task bash-1"],
            "tool_calls": [{"name": "task_output", "arguments": {"task_id": "bash-1"}}],
        },
        {"expect": ["built\n[status: completed, exit code: 0]"], "text": "It is built."},
    ])
}

/// Runs that, with its task ending once the agent is idle.
async fn built(room: &Room, format: &[&str]) -> Ran {
    let model = room.script("model.json", turns());
    let arguments = [&["build it", "--model", &model, "--session", "s.jsonl"], format].concat();
    let running = room.running(&arguments);
    running.rests(1).await;
    room.go();
    let ran = running.ended().await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    ran
}

/// Stdout without what differs from run to run.
fn check(room: &Room, stdout: &str, session: &str, expected: Expect) {
    let work = room.work().display().to_string();
    expected.assert_eq(&stdout.replace(&work, "WORK").replace(session, "SESSION"));
}

#[tokio::test]
async fn text_is_what_the_agent_says_and_nothing_else() {
    let room = Room::new();
    let ran = built(&room, &[]).await;
    expect![[r#"
        I start it.
        I wait for it.
        It is built.
    "#]]
    .assert_eq(&ran.stdout);
    room.assert_empty();
}

#[tokio::test]
async fn json_is_one_object() {
    let room = Room::new();
    let ran = built(&room, &["--output-format", "json"]).await;
    let [result] = ran.lines().try_into().expect("one line");
    assert_eq!(result["result"], "It is built.");
    assert_eq!(result["tasks"][0]["status"], "completed");
    let session = result["session"].as_str().expect("an id");
    check(
        &room,
        &ran.stdout,
        session,
        expect![[r#"
        {"session":"SESSION","status":"completed","result":"It is built.","usage":{"input_tokens":0,"cache_read_tokens":0,"output_tokens":0},"tasks":[{"id":"bash-1","kind":"bash","label":"until [ -e go ]; do sleep 0.02; done; echo built","status":"completed","detail":"exit code: 0"}]}
    "#]],
    );
}

#[tokio::test]
async fn stream_json_shows_everything_from_the_session_to_the_one_result() {
    let room = Room::new();
    let ran = built(&room, &["--output-format", "stream-json"]).await;
    let lines = ran.lines();
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!(
        (&first["type"], &last["type"]),
        (&json!("session"), &json!("result"))
    );
    assert_eq!(ran.of_type("result").len(), 1);
    let place = |wanted: Value| {
        lines.iter().position(|line| {
            wanted
                .as_object()
                .into_iter()
                .flatten()
                .all(|(key, value)| line[key] == *value)
        })
    };
    let ended = place(json!({"type": "task", "status": "completed"})).expect("its end");
    let started = place(json!({"type": "task", "status": "running"})).expect("its start");
    let result = place(json!({"type": "tool_result", "id": "call-1"})).expect("the result that names it");
    assert_eq!(started, result + 1);
    assert!(started < ended);
    assert!(ended < place(json!({"type": "notice"})).expect("a notice"));
    let without_tasks: String = ran
        .stdout
        .lines()
        .filter(|line| !line.contains(r#""type":"task""#))
        .map(|line| format!("{line}\n"))
        .collect();
    let session = first["session"].as_str().expect("an id");
    check(
        &room,
        &without_tasks,
        session,
        expect![[r#"
        {"type":"session","session":"SESSION","provider":"scripted","model":"model.json","cwd":"WORK"}
        {"type":"text","turn":1,"text":"I start it."}
        {"type":"tool_call","turn":1,"id":"call-1","name":"bash","arguments":{"command":"until [ -e go ]; do sleep 0.02; done; echo built","description":"run a test command","run_in_background":true}}
        {"type":"tool_result","turn":1,"id":"call-1","text":"started background task bash-1","is_error":false}
        {"type":"text","turn":1,"text":"I wait for it."}
        {"type":"notice","turn":2,"text":"background task bash-1 (bash: until [ -e go ]; do sleep 0.02; done; echo built) finished [status: completed, exit code: 0]. Read its output with task_output.\nlast output:\n> built","tasks":["bash-1"]}
        {"type":"tool_call","turn":2,"id":"call-2","name":"task_output","arguments":{"task_id":"bash-1"}}
        {"type":"tool_result","turn":2,"id":"call-2","text":"built\n[status: completed, exit code: 0]","is_error":false}
        {"type":"text","turn":2,"text":"It is built."}
        {"type":"result","session":"SESSION","status":"completed","result":"It is built.","usage":{"input_tokens":0,"cache_read_tokens":0,"output_tokens":0},"tasks":[{"id":"bash-1","kind":"bash","label":"until [ -e go ]; do sleep 0.02; done; echo built","status":"completed","detail":"exit code: 0"}]}
    "#]],
    );
}

#[tokio::test]
async fn every_task_stands_behind_the_result_that_names_it() {
    let room = Room::new();
    // Some end before anybody can look, some beside the next step. Together they stay below the limit of an owner.
    let turns = (0..9).map(|n| starts(["true", "sleep 0.01", "sleep 0.1"][n % 3]));
    let turns = turns.chain((0..20).map(|_| json!({"text": "Told."})));
    let model = room.script("model.json", turns.collect());
    let ran = room
        .run(&["go", "--model", &model, "--output-format", "stream-json"])
        .await;
    let lines = ran.lines();
    for n in 1..=9 {
        let id = format!("bash-{n}");
        let named = format!("started background task {id}");
        let result = lines.iter().position(|line| line["text"] == named.as_str());
        let mut of_task = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line["id"] == id.as_str());
        let (first, begun) = of_task
            .next()
            .unwrap_or_else(|| panic!("{id}: no line of it in {ran:?}"));
        assert_eq!(Some(first), result.map(|result| result + 1), "{id}: {ran:?}");
        assert_eq!(begun["status"], "running");
        let (end, _) = of_task
            .next_back()
            .unwrap_or_else(|| panic!("{id}: no end of it in {ran:?}"));
        let notice = lines.iter().position(|line| {
            let tasks = line["tasks"].as_array().into_iter().flatten();
            line["type"] == "notice" && tasks.into_iter().any(|task| *task == id.as_str())
        });
        assert!(notice.is_none_or(|notice| end < notice), "{id}: {ran:?}");
    }
    room.assert_empty();
}

#[tokio::test]
async fn the_prompt_may_come_from_stdin() {
    let room = Room::new();
    for argument in ["", "-"] {
        room.script(
            "model.json",
            json!([{"expect": ["from a pipe"], "text": "Read."}]),
        );
        let script = format!("printf 'from a pipe\\n' | \"$0\" run {argument} --model scripted:model.json");
        let output = room.shell(&script).output().await.expect("the shell runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.stdout, b"Read.\n", "{told}");
    }
}

#[tokio::test]
async fn on_a_terminal_one_line_says_what_goes_on_and_elsewhere_none_does() {
    let room = Room::new();
    room.script(
        "model.json",
        json!([starts("touch up; sleep 600"), {"text": "It runs.", "wait_for_file": "up"}]),
    );
    let script = "script -qefc \"$0 run serve --model scripted:model.json --linger 0 >said\" typescript";
    let ran = tests::ran(room.shell(script)).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = std::fs::read_to_string(room.file("typescript")).expect("what was shown");
    for piece in [
        "\x1b[?7lthinking\x1b[?7h\r\x1b[K\x1b[?7l",
        "| bash-1 running",
        "dsh: ended with the run: bash-1",
    ] {
        assert!(shown.contains(piece), "{piece:?} is not in {shown:?}");
    }
    let (_, end) = shown.rsplit_once("stopping\x1b[?7h").expect("the last line");
    assert!(
        end.starts_with("\r\x1b[K\nScript done"),
        "it is erased: {shown:?}"
    );
    let said = std::fs::read_to_string(room.file("said")).expect("stdout");
    assert_eq!(said, "It runs.\n");

    room.script("model.json", json!([{"text": "It runs."}]));
    let plain = room.run(&["serve", "--model", "scripted:model.json"]).await;
    assert_eq!(plain.stderr, "");
    room.assert_empty();
}
