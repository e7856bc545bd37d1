//! Ends that other systems lost, told twice, or called by the wrong name.

use std::fmt::Write as _;

use serde_json::json;
use tests::{GATED, Server};

/// What can be true of a command that ends with 0 while it is being killed: it was done; it was asked, and ended by the
/// signal or by itself; its shell was gone already.
const TRUE_ENDS: [&str; 4] = [
    "[status: completed, exit code: 0]",
    "[status: killed, signal: SIGTERM]",
    "[status: killed, exit code: 0]",
    "[status: killed, shell had exited with code 0]",
];

#[tokio::test]
async fn every_kind_of_end_has_its_own_words() {
    let mut server = Server::start().await;
    let cases = [
        ("kill -9 $$", "[status: killed, signal: SIGKILL]"),
        ("kill -TERM $$", "[status: killed, signal: SIGTERM]"),
        ("false | cat", "[status: completed, exit code: 0]"),
        ("exit 7", "[status: completed, exit code: 7]"),
        (
            "sh -c 'kill -9 $$'; exit $?",
            "[status: completed, exit code: 137]",
        ),
        (
            "no-such-command-here 2>/dev/null",
            "[status: completed, exit code: 127]",
        ),
    ];
    for (command, status) in cases {
        let id = server.background(command).await;
        let reply = server.wait(&id).await;
        assert!(reply.ok().ends_with(status), "{command}: {reply:?}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_foreground_end_by_signal_is_not_exit_0() {
    let mut server = Server::start().await;
    assert_eq!(
        server.bash("kill -9 $$").await.ok(),
        "(no output)\n[killed by signal: SIGKILL]"
    );
    assert_eq!(server.bash("exit 7").await.ok(), "(no output)\n[exit code: 7]");
    server.close().await;
}

#[tokio::test]
async fn a_waiter_that_was_there_first_is_the_only_one_told() {
    let mut server = Server::start().await;
    for _ in 0..10 {
        let id = server.background("sleep 0.1").await;
        let reply = server.wait(&id).await;
        assert_eq!(
            reply.texts,
            ["(no new output)\n[status: completed, exit code: 0]"]
        );
        assert_eq!(server.bash("true").await.texts.len(), 1, "not told again");
    }
    server.close().await;
}

#[tokio::test]
async fn an_end_is_told_once_however_many_calls_follow() {
    let mut server = Server::start().await;
    let id = server.background(&format!("{GATED}echo hi")).await;
    server.room.go();
    let first = server.told_by("task_list", json!({})).await;
    assert_eq!(first.notices().len(), 1);
    for _ in 0..20 {
        assert_eq!(server.bash("true").await.texts.len(), 1);
        assert_eq!(server.list().await.texts.len(), 1);
    }
    assert_eq!(
        server.output(&id).await.ok(),
        "hi\n[status: completed, exit code: 0]"
    );
    server.close().await;
}

#[tokio::test]
async fn the_whole_output_is_there_when_the_end_is() {
    let mut server = Server::start().await;
    let mut script = String::new();
    for number in 0..500 {
        writeln!(script, "{number}").expect("a string");
    }
    for _ in 0..10 {
        let id = server
            .background("printf A; sleep 0.02; seq 0 499; printf B")
            .await;
        let reply = server.wait(&id).await;
        assert_eq!(
            reply.ok(),
            format!("A{script}B\n[status: completed, exit code: 0]")
        );
    }
    server.close().await;
}

#[tokio::test]
async fn output_polled_across_the_end_is_complete_and_never_repeated() {
    let mut server = Server::start().await;
    for _ in 0..5 {
        let id = server
            .background("for i in 1 2 3 4 5 6 7 8; do printf $i; sleep 0.01; done")
            .await;
        let mut all = String::new();
        loop {
            let reply = server.output(&id).await;
            let (body, status) = reply.ok().rsplit_once('\n').expect("a body and a status line");
            if body != "(no new output)" {
                all.push_str(body);
            }
            if !status.starts_with("[status: running") {
                assert_eq!(status, "[status: completed, exit code: 0]");
                break;
            }
        }
        assert_eq!(all, "12345678");
        assert_eq!(
            server.output(&id).await.ok(),
            "(no new output)\n[status: completed, exit code: 0]"
        );
    }
    server.close().await;
}

#[tokio::test]
async fn a_kill_that_meets_the_natural_end_has_one_outcome() {
    let mut server = Server::start().await;
    for round in 0..25 {
        let id = server.background("sleep 0.0$((RANDOM % 5))").await;
        let killed = server.kill(&id).await;
        let last = server.wait(&id).await;
        let status = last.ok().rsplit('\n').next().expect("a status line").to_owned();
        assert!(TRUE_ENDS.contains(&&*status), "round {round}: {status}");
        if let Some(said) = killed
            .ok()
            .strip_prefix(&format!("task {id} had already finished "))
        {
            assert_eq!(said, status, "what was told stays true");
        }
        assert_eq!(
            server.output(&id).await.ok(),
            format!("(no new output)\n{status}")
        );
        assert_eq!(
            server.list().await.texts.len(),
            1,
            "round {round}: no further notice"
        );
    }
    server.close().await;
}

#[tokio::test]
async fn a_start_that_failed_leaves_no_running_task() {
    let mut server = Server::start().await;
    let arguments =
        json!({"command": "true", "description": "d", "run_in_background": true, "workdir": "gone"});
    assert!(server.call("bash", arguments).await.error().contains("gone"));
    assert_eq!(server.list().await.ok(), "(no background tasks)");
    server.close().await;
}

#[tokio::test]
async fn nothing_ends_a_task_that_nobody_asked_to_end() {
    let mut server = Server::start().await;
    let id = server.background("echo $$ > pid; exec sleep 60").await;
    let pid = server.room.pid("pid").await;
    for _ in 0..20 {
        server.bash("true").await;
    }
    assert!(!dsh_testkit::process::is_gone(pid));
    assert_eq!(
        server.output(&id).await.ok(),
        "(no new output)\n[status: running]"
    );
    server.close().await;
}

#[tokio::test]
async fn an_id_is_never_given_twice() {
    let mut server = Server::start().await;
    for number in 1..=15 {
        let id = server.background("true").await;
        assert_eq!(id, format!("bash-{number}"));
        server.wait(&id).await;
    }
    server.close().await;
}
