//! What the end of the process, and what it writes for people, have to do with the end of the turn.

use dsh_subagent::StopReason;
use dsh_subagent_codex::CodexConfig;
use dsh_testkit::{LogCapture, eventually};

use crate::played::{Room, assert_safe, diagnostic, line};

const SIGN: &str = "echo 'WARN approval policy is Never; reject command SECRET_TOKEN' >&2";

const FACT: &str = "\nCodex unattended decision (mode: never; request: command execution; decision: denied): \
                    Codex rejected an escalation because the selected policy never asks for approval";

#[tokio::test]
async fn s191_a_full_context_a_sign_and_an_exit_make_one_diagnostic() {
    let script = format!("begin; message 'so far'; {SIGN}; failed '\"contextWindowExceeded\"'; exit 17");
    let room = Room::new(&script);
    let run = room.start().await;
    room.hold_until_it_exited();
    let result = run.result().await.expect("a result");
    assert_eq!(
        (&result.stop, result.text().as_str()),
        (&StopReason::MaxTokens, "so far")
    );
    assert_eq!(
        diagnostic(&result),
        line("stage: turn; category: contextWindowExceeded; exit code: 17") + FACT
    );
    run.dispose().await.expect("nothing is left");
}

#[tokio::test]
async fn s192_a_process_that_ends_before_its_turn_is_a_failure_with_its_exit() {
    let logged = LogCapture::start();
    for (end, exit) in [
        ("exit 17", "; exit code: 17"),
        ("exit 0", "; exit code: 0"),
        ("kill -KILL $$", "; signal: SIGKILL"),
        // It stops to talk first.
        ("exec 1>&-; sleep 0.1; exit 5", "; exit code: 5"),
    ] {
        let room = Room::new(&format!("begin; message 'so far'; echo SECRET_TOKEN >&2; {end}"));
        let result = room.run().await;
        assert_eq!(
            (&result.stop, result.text().as_str()),
            (&StopReason::Error, "so far")
        );
        let first = line(&format!("stage: process; category: process-exit{exit}"));
        assert_eq!(diagnostic(&result), first, "{end}");
        let told = format!("subagent-codex \"codex\": child run failed (error): {first}");
        let told: Vec<String> = logged
            .lines()
            .into_iter()
            .filter(|line| line.contains(&told))
            .collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_safe(&told[0]);
    }
}

#[tokio::test]
async fn s192_a_queued_end_of_the_turn_beats_the_end_of_the_process() {
    for (ends, stop) in [
        ("completed; exit 17", StopReason::Completed),
        ("failed '\"other\"'; exit 17", StopReason::Error),
    ] {
        let room = Room::new(&format!("begin; message done; {ends}"));
        let run = room.start().await;
        room.hold_until_it_exited();
        let result = run.result().await.expect("a result");
        assert_eq!((&result.stop, result.text().as_str()), (&stop, "done"));
        if stop == StopReason::Completed {
            assert_eq!(result.diagnostic, None);
        } else {
            let first = line("stage: turn; category: other; exit code: 17");
            assert_eq!(diagnostic(&result), first);
        }
        run.dispose().await.expect("nothing is left");
    }
}

#[tokio::test]
async fn s192_who_stops_to_talk_and_lives_has_the_grace() {
    for silent in ["exec 1>&-; sleep 600", "exec 0<&-; say x; exec 1>&-; sleep 600"] {
        let room = Room::bare(&format!("begin; {silent}"));
        room.install(CodexConfig {
            dispose_grace_ms: 30.5,
            ..CodexConfig::default()
        });
        let result = room.run().await;
        assert_eq!(
            diagnostic(&result),
            line("stage: turn; category: unknown"),
            "{silent}"
        );
    }
}

#[tokio::test]
async fn s192_what_it_started_and_left_with_its_pipes_does_not_hold_the_result() {
    for left in ["sleep 600", "while :; do say '{}'; done"] {
        let room = Room::bare(&format!("begin; ({left}) & exit 9"));
        room.install(CodexConfig {
            dispose_grace_ms: 30.0,
            ..CodexConfig::default()
        });
        let result = room.run().await;
        let first = line("stage: process; category: process-exit; exit code: 9");
        assert_eq!(diagnostic(&result), first, "{left}");
    }
}

#[tokio::test]
async fn s194_a_sign_behind_the_end_of_the_turn_is_still_told() {
    let room = Room::new(&format!("begin; failed '\"other\"'; {SIGN}; echo > said; listen"));
    let run = room.start().await;
    room.hold_until_made("said");
    let result = run.result().await.expect("a result");
    assert_eq!(diagnostic(&result), line("stage: turn; category: other") + FACT);
    run.dispose().await.expect("nothing is left");
}

#[tokio::test]
async fn s195_what_it_writes_for_people_is_in_the_debug_log_and_of_it_only_the_fact_is_told() {
    let logged = LogCapture::start();
    let script = format!(
        "begin; {SIGN}; echo of-s195 >&2; until [ -e go ]; do sleep 0.01; done; failed '\"other\"'; listen"
    );
    let room = Room::new(&script);
    let run = room.start().await;
    let raw = "approval policy is Never; reject command SECRET_TOKEN";
    eventually("it to be logged", || logged.contains("of-s195")).await;
    room.make("go");
    let result = run.result().await.expect("a result");
    assert_eq!(diagnostic(&result), line("stage: turn; category: other") + FACT);
    run.dispose().await.expect("nothing is left");
    let lines = logged.lines();
    let raw: Vec<&String> = lines.iter().filter(|line| line.contains(raw)).collect();
    assert!(
        !raw.is_empty() && raw.iter().all(|line| line.contains("DEBUG")),
        "{raw:?}"
    );
}
