//! What a person gets from the commands of the binary.

use std::process::{Output, Stdio};

use dsh_testkit::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tests::Room;

async fn run(room: &Room, arguments: &[&str]) -> Output {
    room.dsh().args(arguments).output().await.expect("dsh runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("stdout is text")
}

#[tokio::test]
async fn the_demonstration_shows_true_facts_only_and_leaves_nothing() {
    let room = Room::new();
    let output = run(&room, &["demo"]).await;
    let shown = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.matches("[true]").count() >= 10, "{shown}");
    assert!(!shown.contains("[FALSE]"), "{shown}");
    for step in [
        "started background task bash-2",
        "!! background task bash-1",
        "== Nobody asks. A task has ended.",
    ] {
        assert!(shown.contains(step), "{step} is missing in {shown}");
    }
    room.assert_empty();
}

/// Starts `command`, which runs the demonstration, waits until its server runs, and sends `signal` to it.
async fn signalled(room: &Room, mut command: tokio::process::Command, signal: Signal) -> Output {
    let child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let pid = Pid::from_raw(child.id().expect("it runs").cast_signed());
    eventually("the server of the demonstration runs", || {
        room.processes().iter().any(|pid| is_worker(*pid))
    })
    .await;
    kill(pid, signal).expect("the signal is sent");
    child.wait_with_output().await.expect("dsh ends")
}

fn is_worker(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| command == b"sleep\x00600\x00")
}

#[tokio::test]
async fn every_termination_signal_ends_what_was_started() {
    for (signal, code) in [
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
        (Signal::SIGQUIT, 131),
        (Signal::SIGTERM, 143),
    ] {
        let room = Room::new();
        let mut demo = room.dsh();
        demo.arg("demo");
        let output = signalled(&room, demo, signal).await;
        assert_eq!(output.status.code(), Some(code), "{signal}");
        room.assert_empty();
    }
}

#[tokio::test]
async fn under_nohup_a_hangup_changes_nothing() {
    let room = Room::new();
    let demo = room.shell("trap '' HUP; exec \"$0\" demo");
    let output = signalled(&room, demo, Signal::SIGHUP).await;
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    room.assert_empty();
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_reason_to_panic() {
    let room = Room::new();
    for command in ["demo", "config schema", "config show", "config surface"] {
        let script = format!("(\"$0\" {command}; echo $? > status) | true");
        let output = room.shell(&script).output().await.expect("the shell runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!told.contains("panicked"), "{command}: {told}");
        eventually("the command ended", || {
            std::fs::read_to_string(room.file("status")).is_ok_and(|status| !status.is_empty())
        })
        .await;
        let status = std::fs::read_to_string(room.file("status")).expect("it is there");
        // What fits into the pipe before the reader is gone is written.
        assert!(["0\n", "1\n"].contains(&status.as_str()), "{command}: {status}");
        std::fs::remove_file(room.file("status")).expect("it is there");
    }
    room.assert_empty();
}

#[tokio::test]
async fn the_document_of_the_model_surface_is_current() {
    let room = Room::new();
    let surface = stdout(&run(&room, &["config", "surface"]).await);
    let document = include_str!("../../../docs/model-surface.md");
    assert!(
        surface == document,
        "docs/model-surface.md is out of date: run `cargo xtask surface`"
    );
}

#[tokio::test]
async fn the_configuration_that_is_shown_can_be_loaded() {
    let room = Room::new();
    let shown = stdout(&run(&room, &["config", "show"]).await);
    std::fs::write(room.file("shown.toml"), &shown).expect("a file");
    let again = run(&room, &["--config", "shown.toml", "config", "show"]).await;
    assert_eq!(again.status.code(), Some(0));
    let body = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(body(&shown).len() > 10, "{shown}");
    assert_eq!(body(&shown), body(&stdout(&again)));
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_with_every_fault() {
    let room = Room::new();
    let config = "vocabulary = \"jobs\"\n[bash]\ngrace = 1\ntimeout_ms = -1\n";
    std::fs::write(room.home().join("config.toml"), config).expect("a file");
    let output = run(&room, &["mcp"]).await;
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for word in ["config.toml", "vocabulary", "grace", "timeout_ms"] {
        assert!(told.contains(word), "{word} is missing in {told}");
    }
    assert!(output.stdout.is_empty());
}
