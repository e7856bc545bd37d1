//! Sessions of `dsh run`: written, gone on with, and what became of the tasks in between.

use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::{GATED, Ran, Room, says, starts};
use tokio::io::{AsyncBufReadExt, BufReader};

fn reads(id: &str) -> Value {
    json!({"tool_calls": [{"name": "task_output", "arguments": {"task_id": id, "wait": true}}]})
}

fn with_expectation(mut turn: Value, expected: &[&str]) -> Value {
    turn["expect"] = json!(expected);
    turn
}

async fn resumed(room: &Room, prompt: &str, turns: Value) -> Ran {
    let model = room.script("resumed.json", turns);
    let arguments = [
        prompt,
        "--model",
        &model,
        "--session",
        "s.jsonl",
        "--resume",
        "--output-format",
        "stream-json",
    ];
    let ran = room.run(&arguments).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

#[tokio::test]
async fn a_conversation_goes_on_where_it_was() {
    let room = Room::new();
    let model = room.script("model.json", json!([says("Hello Ada.")]));
    let first = room
        .run(&[
            "I am Ada",
            "--model",
            &model,
            "--session",
            "s.jsonl",
            "--output-format",
            "json",
        ])
        .await;
    assert_eq!(first.code, Some(0), "{first:?}");
    let second = resumed(&room, "who am I?", json!([says("Ada.")])).await;
    assert_eq!(second.lines()[0]["session"], first.lines()[0]["session"]);
    let log = std::fs::read_to_string(room.file("s.jsonl")).expect("the log");
    let said = ["I am Ada", "Hello Ada.", "who am I?", "Ada."];
    let mut rest = log.as_str();
    for text in said {
        let at = rest.find(&format!("\"{text}\"")).expect(text);
        rest = &rest[at..];
    }
}

#[tokio::test]
async fn a_session_is_neither_overwritten_nor_made_up() {
    let room = Room::new();
    let model = room.script("model.json", json!([says("Hello.")]));
    let run = |file: &'static str, resume: bool| {
        let (room, model) = (&room, &model);
        async move {
            let mut arguments = vec!["hi", "--model", model, "--session", file];
            if resume {
                arguments.push("--resume");
            }
            room.run(&arguments).await
        }
    };
    std::fs::write(room.file("notes.txt"), "my notes\n").expect("a file");
    for (file, resume, code, told) in [
        ("notes.txt", false, 2, "notes.txt exists and is not empty"),
        ("none.jsonl", true, 2, "none.jsonl"),
        ("notes.txt", true, 2, "notes.txt is no session file"),
        ("no/such/directory.jsonl", false, 2, "no/such/directory.jsonl"),
        ("notes.txt/s.jsonl", false, 2, "notes.txt/s.jsonl"),
        (".", false, 2, "session file"),
        (".", true, 2, "session file"),
    ] {
        let ran = run(file, resume).await;
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(told), "{ran:?}");
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(
        std::fs::read(room.file("notes.txt")).expect("a file"),
        b"my notes\n"
    );
    std::fs::write(room.file("empty.jsonl"), "").expect("a file");
    assert_eq!(
        run("empty.jsonl", false).await.code,
        Some(0),
        "an empty file is a new one"
    );
}

#[tokio::test]
async fn a_task_of_a_killed_harness_is_told_once_and_its_id_is_never_given_again() {
    let room = Room::new();
    let model = room.script(
        "model.json",
        json!([starts("echo $$ > pid; sleep 600"), says("It runs.")]),
    );
    let running = room.running(&[
        "serve",
        "--model",
        &model,
        "--session",
        "s.jsonl",
        "--output-format",
        "stream-json",
    ]);
    running.prints("It runs.").await;
    room.pid("pid").await;
    running.signal(Signal::SIGKILL);
    running.ended().await;
    dsh_testkit::eventually("the task ended with its harness", || room.processes().is_empty()).await;

    let lost = "background task bash-1 (bash: echo $$ > pid; sleep 600) finished [status: failed, interrupted: the harness ended]. Read its output with task_output.";
    let interrupted = "[status: failed, interrupted: the harness ended]";
    let second = resumed(
        &room,
        "and now?",
        json!([
            with_expectation(reads("bash-1"), &[lost, "and now?"]),
            with_expectation(starts("true"), &[interrupted]),
            with_expectation(reads("bash-2"), &["started background task bash-2"]),
            says("Seen."),
        ]),
    )
    .await;
    let told = |ran: &Ran| {
        let notices = ran.of_type("notice").into_iter();
        notices
            .filter(|notice| notice["tasks"] == json!(["bash-1"]))
            .count()
    };
    assert_eq!(told(&second), 1, "{second:?}");

    let third = resumed(
        &room,
        "still?",
        json!([
            with_expectation(reads("bash-1"), &["still?"]),
            with_expectation(starts("true"), &[interrupted]),
            with_expectation(reads("bash-3"), &["started background task bash-3"]),
            says("Seen."),
        ]),
    );
    let third = third.await;
    assert_eq!(told(&third), 0, "{third:?}");
    room.assert_empty();
}

#[tokio::test]
async fn a_notice_that_was_not_delivered_comes_with_the_next_message_and_its_true_status() {
    let room = Room::new();
    let config = "[tool_tasks]\ncompletion_delivery = \"quiet\"\n";
    std::fs::write(room.home().join("config.toml"), config).expect("a file");
    let model = room.script(
        "model.json",
        json!([starts(&format!("{GATED}exit 3")), says("It runs.")]),
    );
    let running = room.running(&["build", "--model", &model, "--session", "s.jsonl"]);
    running.rests(1).await;
    room.go();
    let first = running.ended().await;
    assert!(
        first.stderr.contains("not delivered: background task bash-1 "),
        "{first:?}"
    );

    let status = "[status: completed, exit code: 3]";
    let second = resumed(
        &room,
        "and now?",
        json!([
            with_expectation(reads("bash-1"), &[status, "and now?"]),
            with_expectation(says("Seen."), &[&format!("(no new output)\n{status}")]),
        ]),
    )
    .await;
    assert_eq!(second.of_type("notice").len(), 0, "it is in the log: {second:?}");
    let log = std::fs::read_to_string(room.file("s.jsonl")).expect("the log");
    assert_eq!(
        log.matches("finished [status: completed, exit code: 3]. Read")
            .count(),
        1
    );
    let notice = log.find("finished [status: completed").expect("the notice");
    assert!(notice < log.find("and now?").expect("the message"));
}

#[tokio::test]
async fn a_kill_that_was_told_is_not_told_again() {
    let room = Room::new();
    let kill = json!({"tool_calls": [{"name": "task_kill", "arguments": {"task_id": "bash-1"}}]});
    let model = room.script("model.json", json!([starts("sleep 600"), kill, says("Killed.")]));
    let arguments = ["stop", "--model", &model, "--session", "s.jsonl"];
    assert_eq!(room.run(&arguments).await.code, Some(0));
    let second = resumed(
        &room,
        "and now?",
        json!([
            reads("bash-1"),
            with_expectation(says("Seen."), &["[status: killed]"])
        ]),
    );
    assert_eq!(second.await.of_type("notice"), Vec::<Value>::new());
}

#[tokio::test]
async fn two_runs_cannot_have_one_session() {
    let room = Room::new();
    let model = room.script(
        "model.json",
        json!([starts("touch up; sleep 600"), says("It runs.")]),
    );
    let running = room.running(&["serve", "--model", &model, "--session", "s.jsonl"]);
    running.prints("It runs.").await;
    room.made("up").await;
    let other = room
        .run(&["hi", "--model", &model, "--session", "s.jsonl", "--resume"])
        .await;
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.stderr.contains("s.jsonl is in use"), "{other:?}");
    running.signal(Signal::SIGINT);
    assert_eq!(running.ended().await.code, Some(130));
    room.assert_empty();
}

#[tokio::test]
async fn a_torn_log_goes_on_and_a_broken_one_is_refused() {
    let room = Room::new();
    let model = room.script("model.json", json!([says("Hello.")]));
    assert_eq!(
        room.run(&["hi", "--model", &model, "--session", "s.jsonl"])
            .await
            .code,
        Some(0)
    );
    let whole = std::fs::read_to_string(room.file("s.jsonl")).expect("the log");
    std::fs::write(room.file("s.jsonl"), format!("{whole}{{\"type\":\"turn/st")).expect("a file");
    resumed(&room, "again", json!([says("Hello again.")])).await;

    let hole: Vec<&str> = whole
        .lines()
        .enumerate()
        .filter(|(at, _)| *at != 2)
        .map(|(_, line)| line)
        .collect();
    std::fs::write(room.file("s.jsonl"), hole.join("\n") + "\n").expect("a file");
    let ran = room
        .run(&["hi", "--model", &model, "--session", "s.jsonl", "--resume"])
        .await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("line 3"), "{ran:?}");
}

#[tokio::test]
async fn a_task_that_was_shown_is_in_the_log() {
    for round in 0..8 {
        let room = Room::new();
        let model = room.script("model.json", json!([starts("sleep 600"), says("It runs.")]));
        let mut command = room.dsh();
        command.args(["run", "go", "--model", &model, "--output-format", "stream-json"]);
        command
            .args(["--session", "s.jsonl"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut dsh = command.stderr(Stdio::null()).spawn().expect("dsh starts");
        let mut lines = BufReader::new(dsh.stdout.take().expect("a pipe")).lines();
        while let Some(line) = lines.next_line().await.expect("text") {
            if line.contains(r#""type":"task""#) {
                break;
            }
        }
        dsh.start_kill().expect("it is there");
        dsh.wait().await.expect("it was started");
        let log = std::fs::read_to_string(room.file("s.jsonl")).expect("the log");
        assert!(log.contains("background task bash-1"), "round {round}: {log}");
    }
}
