//! How `dsh run` ends: its exit codes, what it says, and that nothing is left.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::{GATED, Ran, Room, ran, says, starts};

/// A task that never ends by itself, and says that it is there.
const SERVER: &str = "touch up; sleep 600";

/// Starts a server and rests.
fn server() -> Value {
    json!([starts(SERVER), says("It runs.")])
}

fn assert_failed(ran: &Ran, code: i32, told: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert!(ran.stderr.contains(told), "{told:?} is missing: {ran:?}");
}

#[tokio::test]
async fn a_failed_turn_exits_with_1_and_says_why() {
    let room = Room::new();
    let broken =
        json!([{"text": "Before.", "error": {"message": "the model is on holiday", "code": "SERVER"}}]);
    let model = room.script("model.json", broken);
    let ran = room
        .run(&["hello", "--model", &model, "--output-format", "json"])
        .await;
    assert_failed(&ran, 1, "dsh: the model is on holiday\n");
    assert_eq!(ran.lines()[0]["status"], "failed");
    assert_eq!(ran.lines()[0]["error"], "the model is on holiday");
}

#[tokio::test]
async fn an_answer_at_its_limit_of_tokens_is_a_failure_that_names_the_limit() {
    let room = Room::new();
    let config = "[model]\nmax_tokens = 17\n";
    std::fs::write(room.home().join("config.toml"), config).expect("a file");
    let model = room.script(
        "model.json",
        json!([{"text": "Once upon", "finish": "max-tokens"}]),
    );
    let ran = room.run(&["tell me a story", "--model", &model]).await;
    assert_failed(&ran, 1, "model.max_tokens = 17");
    assert_eq!(ran.stdout, "Once upon\n", "what was said is not lost");
}

#[tokio::test]
async fn a_script_that_does_not_fit_is_a_failure() {
    let room = Room::new();
    let model = room.script("short.json", json!([starts("true")]));
    assert_failed(&room.run(&["go", "--model", &model]).await, 1, "short.json");
    let model = room.script("long.json", json!([says("Done."), says("More.")]));
    let ran = room
        .run(&["go", "--model", &model, "--output-format", "json"])
        .await;
    assert_failed(&ran, 1, "dsh: script ");
    let result = &ran.lines()[0];
    assert_eq!(
        (&result["status"], &result["result"]),
        (&json!("failed"), &json!("Done."))
    );
    let error = result["error"].as_str().expect("an error");
    assert!(error.contains("turns[1] was never asked for"), "{error}");
}

#[tokio::test]
async fn wrong_usage_exits_with_2_before_anything_runs() {
    let room = Room::new();
    std::fs::write(room.file("broken.json"), "{\"turns\": 3}").expect("a file");
    std::fs::write(
        room.file("broken.toml"),
        "[agent]\nmax_parallel = 3\n[approval]\nask = [\"shell\"]\n",
    )
    .expect("a file");
    std::fs::write(
        room.file("cgroup.toml"),
        "[bash]\ncgroup = \"/no/such/directory\"\n",
    )
    .expect("a file");
    let cases: [(&[&str], &str); 15] = [
        (&["hi"], "DEEPSEEK_API_KEY"),
        (&["hi"], "--api-key-env"),
        (&["hi", "--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
        (&["hi", "--model", "compatible:x"], "--base-url"),
        (
            &["hi", "--base-url", "nowhere", "--model", "compatible:x"],
            "nowhere",
        ),
        (&["hi", "--model", "scripted:none.json"], "none.json"),
        (&["hi", "--model", "scripted:broken.json"], "turns"),
        (&["hi", "--resume"], "--session"),
        (
            &["hi", "--model", "nonsense:x"],
            "deepseek, openai, compatible, scripted",
        ),
        (&["hi", "--model", ":"], "unknown provider"),
        (&["hi", "--model", ""], "--model is empty"),
        (&["hi", "--model", "openai"], "openai:NAME"),
        (&["hi", "--api-key-env", ""], "--api-key-env is empty"),
        (
            &[
                "hi",
                "--config",
                "cgroup.toml",
                "--base-url",
                "http://127.0.0.1:9/v1",
            ],
            "/no/such/directory",
        ),
        (
            &["hi", "--config", "broken.toml"],
            "agent.max_parallel: unknown key",
        ),
    ];
    for (arguments, told) in cases {
        let mut arguments = arguments.to_vec();
        if !arguments.contains(&"--resume") {
            arguments.extend(["--session", "s.jsonl"]);
        }
        let ran = room.run(&arguments).await;
        assert_failed(&ran, 2, told);
        assert_eq!(ran.stdout, "");
        assert!(!room.file("s.jsonl").exists(), "{arguments:?}");
    }
    let model = room.script("model.json", server());
    assert_failed(&room.run(&["--model", &model]).await, 2, "no prompt");
    room.assert_empty();
}

#[tokio::test]
async fn a_signal_ends_everything_and_is_the_exit_code() {
    for (signal, code) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
    ] {
        let room = Room::new();
        let model = room.script("model.json", server());
        let running = room.running(&["serve", "--model", &model, "--output-format", "stream-json"]);
        running.prints("It runs.").await;
        room.made("up").await;
        running.signal(signal);
        let ran = running.ended().await;
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(
            ran.stderr
                .contains("ended with the run: bash-1 (bash: touch up; sleep 600)"),
            "{ran:?}"
        );
        let [result] = ran.of_type("result").try_into().expect("one result");
        assert_eq!(result["status"], "cancelled");
        assert_eq!(result["tasks"][0]["status"], "killed", "{ran:?}");
        room.assert_empty();
    }
}

#[tokio::test]
async fn a_signal_in_the_middle_of_an_answer_and_of_a_command() {
    let room = Room::new();
    let foreground = json!({"command": "touch up; sleep 600", "description": "wait"});
    let cases = [
        json!([{"text": "Hm.", "hang": true}]),
        json!([{"text": "Hm.", "tool_calls": [{"name": "bash", "arguments": foreground}]}]),
    ];
    for turns in cases {
        let model = room.script("model.json", turns.clone());
        let running = room.running(&["think", "--model", &model, "--output-format", "stream-json"]);
        match turns[0]["hang"].as_bool() {
            Some(true) => running.prints("session").await,
            _ => room.made("up").await,
        }
        running.signal(Signal::SIGINT);
        let ran = running.ended().await;
        assert_eq!(ran.code, Some(130), "{ran:?}");
        let result = ran.lines().pop().expect("a line");
        assert_eq!(
            (&result["type"], &result["status"]),
            (&json!("result"), &json!("cancelled"))
        );
        room.assert_empty();
    }
}

#[tokio::test]
async fn a_signal_while_the_prompt_is_read() {
    let room = Room::new();
    room.script("model.json", server());
    let script = "mkfifo prompt; sleep 600 >prompt & writer=$!; \"$0\" run --model scripted:model.json <prompt & run=$!; \
                  until grep -q 'SigCgt:.*[2367abef]$' /proc/$run/status; do sleep 0.02; done; \
                  kill -INT $run; wait $run; echo $? >status; kill $writer";
    ran(room.shell(script)).await;
    assert_eq!(
        std::fs::read_to_string(room.file("status")).expect("a status"),
        "130\n"
    );
    room.assert_empty();
}

#[tokio::test]
async fn a_second_signal_skips_the_grace_of_a_run() {
    let room = Room::new();
    let config = "[bash]\ngrace_ms = 3600000\n";
    std::fs::write(room.home().join("config.toml"), config).expect("a file");
    let stubborn = "trap 'touch asked' TERM; touch up; while :; do sleep 0.05; done";
    let model = room.script("model.json", json!([starts(stubborn), says("It runs.")]));
    let running = room.running(&["serve", "--model", &model]);
    running.prints("It runs.").await;
    room.made("up").await;
    running.signal(Signal::SIGTERM);
    room.made("asked").await;
    running.signal(Signal::SIGTERM);
    assert_eq!(running.ended().await.code, Some(143));
    room.assert_empty();
}

#[tokio::test]
async fn it_waits_for_its_tasks_only_so_long_and_names_what_it_ends() {
    let room = Room::new();
    let model = room.script("model.json", server());
    let ran = room
        .run(&[
            "serve",
            "--model",
            &model,
            "--linger",
            "0",
            "--output-format",
            "json",
        ])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "dsh: ended with the run: bash-1 (bash: touch up; sleep 600)\n"
    );
    assert_eq!(ran.lines()[0]["status"], "completed");
    assert_eq!(ran.lines()[0]["tasks"][0]["status"], "killed");
    room.assert_empty();
}

#[tokio::test]
async fn what_nothing_can_tell_any_more_does_not_hold_it_open() {
    let room = Room::new();
    let config = "[tool_tasks]\ncompletion_delivery = \"quiet\"\n";
    std::fs::write(room.home().join("config.toml"), config).expect("a file");
    let command = format!("{GATED}echo built");
    let model = room.script("model.json", json!([starts(&command), says("It runs.")]));
    let running = room.running(&["build", "--model", &model, "--session", "s.jsonl"]);
    running.rests(1).await;
    room.go();
    let ran = running.ended().await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sentence = format!(
        "not delivered: background task bash-1 (bash: {command}) finished [status: completed, exit code: 0]. \
         Read its output with task_output.\n"
    );
    assert_eq!(ran.stderr, sentence);
    room.assert_empty();
}

#[tokio::test]
async fn a_wake_budget_that_is_spent_ends_the_run() {
    let room = Room::new();
    // Each turn starts a task that ends once the turn is over.
    let start = |n: usize| starts(&format!("until [ -e go-{n} ]; do sleep 0.02; done"));
    let turns = (1..=4).flat_map(|n| [start(n), says(&format!("Turn {n} is over."))]);
    let model = room.script("model.json", turns.collect());
    let running = room.running(&["go on", "--model", &model, "--session", "s.jsonl"]);
    for turn in 1..=4 {
        running.rests(turn).await;
        std::fs::write(room.file(&format!("go-{turn}")), "").expect("a file");
    }
    let ran = running.ended().await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.ends_with("Turn 4 is over.\n"), "{ran:?}");
    assert!(
        ran.stderr.starts_with("not delivered: background task bash-4 "),
        "{ran:?}"
    );
    room.assert_empty();
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_it() {
    let room = Room::new();
    room.script(
        "model.json",
        json!([starts(SERVER), {"text": "It runs.", "wait_for_file": "gone"}]),
    );
    let script = "(\"$0\" run serve --model scripted:model.json --output-format stream-json 2>told; echo $? >status) \
                  | { while read -r line; do case $line in *'started background'*) break;; esac; done; exec <&-; touch gone; }";
    ran(room.shell(script)).await;
    let status = std::fs::read_to_string(room.file("status")).expect("a status");
    let told = std::fs::read_to_string(room.file("told")).expect("what was told");
    assert_eq!(status, "1\n", "{told}");
    assert!(told.contains("cannot write to stdout"), "{told}");
    assert!(told.contains("ended with the run: bash-1"), "{told}");
    room.assert_empty();
}

#[tokio::test]
async fn a_reader_that_never_reads_does_not_keep_it_from_ending() {
    let room = Room::new();
    // More than any pipe holds.
    room.script(
        "model.json",
        json!([{"text": "x".repeat(1 << 20), "tool_calls": starts(SERVER)["tool_calls"]}, says("It runs.")]),
    );
    let script = "mkfifo pipe; (until [ -e over ]; do sleep 0.02; done) <pipe & \
                  timeout -s TERM --preserve-status 2 \"$0\" run serve --model scripted:model.json >pipe 2>told; \
                  echo $? >status; touch over; wait";
    let began = std::time::Instant::now();
    ran(room.shell(script)).await;
    assert!(began.elapsed() < Duration::from_secs(25));
    let status = std::fs::read_to_string(room.file("status")).expect("a status");
    assert_eq!(status, "143\n");
    room.assert_empty();
}

#[tokio::test]
async fn a_full_disk_under_the_session_is_told_and_ends_it() {
    let room = Room::new();
    room.script("model.json", json!([starts(SERVER), says(&"x".repeat(100_000))]));
    // In blocks of 512 bytes; a limit of file sizes is as a disk that is full.
    let script = "ulimit -f 40; trap '' XFSZ; exec \"$0\" run serve --model scripted:model.json --session s.jsonl --output-format stream-json";
    let ran = ran(room.shell(script)).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("s.jsonl"), "{ran:?}");
    let result = ran.lines().pop().expect("a line");
    assert_eq!(
        (&result["type"], &result["status"]),
        (&json!("result"), &json!("failed"))
    );
    room.assert_empty();
}
