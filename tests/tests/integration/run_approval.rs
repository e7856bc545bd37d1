//! `dsh run` where a person is asked: on a terminal, and where there is none.

use std::process::Stdio;

use serde_json::{Value, json};
use tests::{GATED, Ran, Room, starts};
use tokio::io::AsyncWriteExt;

fn asking(room: &Room) {
    std::fs::write(room.home().join("config.toml"), "[approval]\nask = [\"bash\"]\n").expect("a file");
}

fn turns() -> Value {
    let command =
        json!({"command": "touch \"$PWD/done\" # \u{1b}[2K\u{202e}\u{200f}", "description": "Do it"});
    json!([{"tool_calls": [{"name": "bash", "arguments": command}]}, {"text": "Over."}])
}

/// Runs `dsh run` on a terminal of its own, where a person types this.
async fn typed(room: &Room, answer: &str) -> Ran {
    typed_to(room, turns(), &[answer]).await
}

/// As [`typed`], where each of these is typed once there is one question more.
async fn typed_to(room: &Room, turns: Value, answers: &[&str]) -> Ran {
    room.script("model.json", turns);
    let script = "script -qefc \"$0 run 'do it' --model scripted:model.json --session s.jsonl >said 2>told\" typescript";
    let mut child = room
        .shell(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut keyboard = child.stdin.take().expect("a keyboard");
    for (before, answer) in answers.iter().enumerate() {
        let shown = || std::fs::read_to_string(room.file("typescript")).unwrap_or_default();
        let asked = || shown().matches("[y/N]").count() > before;
        dsh_testkit::eventually("the question is there", asked).await;
        keyboard.write_all(answer.as_bytes()).await.expect("it is typed");
    }
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
            shown.contains("touch \"$PWD/done\" # \\u{1b}[2K\\u{202e}\\u{200f}\r\n"),
            "characters without a shape are shown, not obeyed: {shown}"
        );
        assert_eq!(
            std::fs::read_to_string(room.file("said")).expect("stdout"),
            "Over.\n"
        );
        room.assert_empty();
    }
}

#[tokio::test]
async fn a_command_elsewhere_is_asked_for_with_its_place() {
    let room = Room::new();
    asking(&room);
    std::fs::create_dir(room.file("sub\u{202e}dir")).expect("a directory");
    let call = |workdir: &str| {
        let command = json!({"command": "true", "description": "Do it", "workdir": workdir});
        json!({"tool_calls": [{"name": "bash", "arguments": command}]})
    };
    let here = room.work();
    let here = here.to_str().expect("text");
    let turns = json!([call("sub\u{202e}dir"), call(here), call("./"), {"text": "Over."}]);
    typed_to(&room, turns, &["y\n", "y\n", "y\n"]).await;
    let shown = std::fs::read_to_string(room.file("typescript")).expect("what was shown");
    let place = format!("dsh: run bash: true\r\ndsh: in {here}/sub\\u{{202e}}dir\r\ndsh: allow it?");
    assert!(shown.contains(&place), "{shown:?}");
    let places = shown.matches("dsh: in ").count();
    assert_eq!(places, 1, "the session's own directory is not told: {shown:?}");
    room.assert_empty();
}

#[tokio::test]
async fn what_was_typed_before_a_question_does_not_answer_it() {
    let room = Room::new();
    asking(&room);
    let call = |file: &str| {
        let command = json!({"command": format!("touch {file}"), "description": "Do it"});
        json!({"tool_calls": [{"name": "bash", "arguments": command}]})
    };
    let turns = json!([call("one"), call("two"), {"text": "Over."}]);
    typed_to(&room, turns, &["y\ny\n", "n\n"]).await;
    assert!(room.file("one").exists());
    assert!(!room.file("two").exists(), "{}", log(&room));
    room.assert_empty();
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
async fn calls_that_overlap_are_asked_for_one_by_one_and_not_at_all_once_nobody_wants_to_know() {
    let look = || json!({"name": "task_list", "arguments": {}});
    let turns = json!([{"tool_calls": [look(), look()]}, {"text": "Over."}]);
    for (answers, code, questions) in [(vec!["y\n", "n\n"], 0, 2), (vec!["\u{3}"], 130, 1)] {
        let room = Room::new();
        let config = "[approval]\nask = [\"task_list\"]\n";
        std::fs::write(room.home().join("config.toml"), config).expect("a file");
        let ran = typed_to(&room, turns.clone(), &answers).await;
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let shown = std::fs::read_to_string(room.file("typescript")).expect("what was shown");
        assert_eq!(shown.matches("[y/N]").count(), questions, "{shown}");
        let denied = log(&room).matches("\"isError\":true").count();
        assert_eq!(denied, if code == 0 { 1 } else { 2 }, "{}", log(&room));
        room.assert_empty();
    }
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

#[tokio::test]
async fn the_question_stands_below_what_led_to_it_until_it_is_answered() {
    let room = Room::new();
    std::fs::write(
        room.home().join("config.toml"),
        "[approval]\nask = [\"task_list\"]\n",
    )
    .expect("a file");
    let look = json!({"text": "I look.", "tool_calls": [{"name": "task_list", "arguments": {}}]});
    let after = "until [ -e go ]; do sleep 0.02; done; sleep 0.3; touch later";
    room.script(
        "model.json",
        json!([starts(&format!("{GATED}true")), starts(after), look, {"text": "Over."}, {"text": "All told."}]),
    );
    let script = "script -qefc \"$0 run 'do it' --model scripted:model.json --linger 0\" typescript";
    let mut child = room
        .shell(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut keyboard = child.stdin.take().expect("a keyboard");
    let shown = || std::fs::read_to_string(room.file("typescript")).unwrap_or_default();
    dsh_testkit::eventually("the question is there", || shown().contains("[y/N]")).await;
    // Now a task ends, which the status line would tell.
    room.go();
    room.made("later").await;
    keyboard.write_all(b"y\n").await.expect("it is typed");
    child.wait_with_output().await.expect("it ends");
    let shown = shown();
    let (before, after) = shown.split_once("[y/N] ").expect("the question");
    assert!(before.contains("I look.\r\n"), "{shown:?}");
    assert!(before.contains("\x1b[Kdsh: run task_list: {}\r\n"), "{shown:?}");
    assert!(after.starts_with("y\r\n"), "it is not written over: {shown:?}");
    assert!(after.contains("Over."), "{shown:?}");
    room.assert_empty();
}
