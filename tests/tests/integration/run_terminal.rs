//! What `dsh run` shows on a terminal of what a model, a provider or a command wrote.

use std::process::Stdio;

use serde_json::{Value, json};
use tests::{Room, starts};

/// Clears the screen, takes the title, turns the direction of writing around.
const RAW: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}\u{9b}K";
const SHOWN: &str = r"\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}\u{9b}K";

/// What `dsh run` shows where it has a terminal for everything.
async fn on_a_terminal(room: &Room, turns: Value) -> String {
    room.script("model.json", turns);
    let run = "script -qefc \"$0 run 'do it' --model scripted:model.json --linger 0\" typescript";
    let mut shell = room.shell(run);
    shell.stdout(Stdio::null());
    tests::ran(shell).await;
    room.assert_empty();
    std::fs::read_to_string(room.file("typescript")).expect("what was shown")
}

#[tokio::test]
async fn what_an_agent_says_is_shown_on_a_terminal_and_not_obeyed() {
    let room = Room::new();
    let shown = on_a_terminal(&room, json!([{"text": format!("One {RAW}\n\ttwo.")}])).await;
    assert!(shown.contains(&format!("One {SHOWN}\r\n")), "{shown:?}");
    assert!(
        !shown.contains("\u{1b}[2J") && !shown.contains('\u{202e}'),
        "{shown:?}"
    );
}

#[tokio::test]
async fn why_a_turn_failed_is_shown_and_not_obeyed() {
    let room = Room::new();
    let error = json!({"error": {"message": format!("no {RAW}"), "code": "BAD"}});
    let shown = on_a_terminal(&room, json!([error])).await;
    assert!(shown.contains(SHOWN), "{shown:?}");
    assert!(
        !shown.contains("\u{1b}[2J") && !shown.contains('\u{202e}'),
        "{shown:?}"
    );
}

#[tokio::test]
async fn what_ends_with_the_run_is_shown_and_not_obeyed() {
    let room = Room::new();
    let turns = json!([starts("sleep 600 # \u{202e}\u{2066}"), {"text": "It runs."}]);
    let shown = on_a_terminal(&room, turns).await;
    let line = r"dsh: ended with the run: bash-1 (bash: sleep 600 # \u{202e}\u{2066})";
    assert!(shown.contains(line), "{shown:?}");
    assert!(!shown.contains('\u{202e}'), "{shown:?}");
}

#[tokio::test]
async fn a_pipe_gets_every_byte() {
    let room = Room::new();
    let model = room.script("model.json", json!([{"text": format!("One {RAW}\n\ttwo.")}]));
    let ran = room.run(&["do it", "--model", &model]).await;
    assert_eq!(ran.stdout, format!("One {RAW}\n\ttwo.\n"));
    let error = json!({"error": {"message": format!("no \u{202e}"), "code": "BAD"}});
    let model = room.script("model.json", json!([error]));
    let ran = room.run(&["do it", "--model", &model]).await;
    assert!(ran.stderr.contains("no \u{202e}"), "{ran:?}");
}
