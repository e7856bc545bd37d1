//! `dsh run` where a person is asked: on a terminal, and where there is none.

use std::process::Stdio;

use serde_json::{Value, json};
use tests::{Ran, Room};
use tokio::io::AsyncWriteExt;

fn asking(room: &Room) {
    std::fs::write(room.home().join("config.toml"), "[approval]\nask = [\"bash\"]\n").expect("a file");
}

fn turns() -> Value {
    let command = json!({"command": "touch \"$PWD/done\" # \u{1b}[2K", "description": "Do it"});
    json!([{"tool_calls": [{"name": "bash", "arguments": command}]}, {"text": "Over."}])
}

/// Runs `dsh run` on a terminal of its own, where a person types this.
async fn typed(room: &Room, answer: &str) -> Ran {
    room.script("model.json", turns());
    let script = "script -qefc \"$0 run 'do it' --model scripted:model.json --session s.jsonl >said 2>told\" typescript";
    let mut child = room
        .shell(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut keyboard = child.stdin.take().expect("a keyboard");
    let asked =
        || std::fs::read_to_string(room.file("typescript")).is_ok_and(|shown| shown.contains("[y/N]"));
    dsh_testkit::eventually("the question is there", asked).await;
    keyboard.write_all(answer.as_bytes()).await.expect("it is typed");
    let output = child.wait_with_output().await.expect("it ends");
    Ran::from(output)
}

fn log(room: &Room) -> String {
    std::fs::read_to_string(room.file("s.jsonl")).expect("the log")
}

#[tokio::test]
async fn a_person_at_the_terminal_is_asked_and_obeyed() {
    for (answer, done) in [("y\n", true), ("n\n", false), ("\n", false)] {
        let room = Room::new();
        asking(&room);
        let ran = typed(&room, answer).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(room.file("done").exists(), done, "{answer:?}: {}", log(&room));
        let shown = std::fs::read_to_string(room.file("typescript")).expect("what was shown");
        assert!(
            shown.contains("touch \"$PWD/done\" # \\u{1b}[2K"),
            "control characters are shown, not obeyed: {shown}"
        );
        assert_eq!(
            std::fs::read_to_string(room.file("said")).expect("stdout"),
            "Over.\n"
        );
        room.assert_empty();
    }
}

#[tokio::test]
async fn a_signal_at_the_question_ends_the_run() {
    let room = Room::new();
    asking(&room);
    // What a terminal makes of ^C.
    let ran = typed(&room, "\u{3}").await;
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(!room.file("done").exists());
    room.assert_empty();
}

#[tokio::test]
async fn without_a_terminal_it_is_denied() {
    let room = Room::new();
    asking(&room);
    room.script("model.json", turns());
    let script = "exec setsid -w \"$0\" run 'do it' --model scripted:model.json --session s.jsonl";
    let ran = tests::ran(room.shell(script)).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!room.file("done").exists());
    assert!(log(&room).contains("\"isError\":true"), "{}", log(&room));
    room.assert_empty();
}
