//! Processes that nobody waits for at once.

use std::time::{Duration, Instant};

use dsh_bash::{
    Asked, BashExecutor, BashRequest, End, EndReason, Found, Pipe, ProcessState, ShellExit, ended_within,
};
use dsh_output::{OutputSource, Rendering};
use dsh_testkit::eventually;

use crate::fixture::{Fixture, said, text};

fn end(exit: ShellExit) -> End {
    End {
        exit,
        asked: None,
        survivors: Vec::new(),
        limits_reached: Vec::new(),
        pipe: Pipe::Closed,
    }
}

fn asked(reason: EndReason) -> Option<Asked> {
    Some(Asked {
        reason,
        found: Found::ShellRunning,
    })
}

fn signal(name: &str) -> ShellExit {
    ShellExit::Signal {
        name: name.into(),
        core_dumped: false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c58_starting_returns_at_once() {
    let fixture = Fixture::new();
    let began = Instant::now();
    let process = fixture.start("until [ -e go ]; do sleep 0.01; done");
    assert!(began.elapsed() < Duration::from_millis(150));
    eventually("running", || process.state() == ProcessState::Running).await;
    std::fs::write(fixture.file("go"), "").unwrap();
    assert_eq!(process.ended().await, end(ShellExit::Code(0)));
    assert_eq!(process.state(), ProcessState::Ended(end(ShellExit::Code(0))));
    assert!(process.output().is_closed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c59_input_and_variables_reach_the_background() {
    let fixture = Fixture::new();
    let request = BashRequest {
        stdin: Some("in ".into()),
        env: [("PLAIN".into(), "plain".into())].into(),
        dsh_env: [("DSH_FACT".into(), "fact".into())].into(),
        ..fixture.request("cat; echo $PLAIN $DSH_FACT")
    };
    let process = fixture.start_request(request);
    process.ended().await;
    assert_eq!(text(&*process), "in plain fact\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c60_reads_go_on_where_they_stopped() {
    let fixture = Fixture::new();
    let process = fixture.start("echo first; until [ -e go ]; do sleep 0.01; done; echo second");
    let reader = process.output().reader(Rendering::Sections);
    said(&*process, "first").await;
    let first = reader.read_from(0, 1000);
    assert_eq!((first.text.as_str(), first.omitted), ("first\n", 0));
    std::fs::write(fixture.file("go"), "").unwrap();
    process.ended().await;
    let second = reader.read_from(first.next, 1000);
    assert_eq!((second.text.as_str(), second.omitted), ("second\n", 0));
    assert_eq!(reader.read_from(second.next, 1000).text, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c61_c62_c63_streams_become_sections() {
    let fixture = Fixture::new();
    for (command, read) in [
        ("echo out; sleep 0.05; echo err >&2", "out\n[stderr]\nerr\n"),
        ("echo err >&2", "[stderr]\nerr\n"),
        ("printf out; sleep 0.05; echo err >&2", "out\n[stderr]\nerr\n"),
    ] {
        let process = fixture.start(command);
        process.ended().await;
        assert_eq!(text(&*process), read, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c66_c16_a_kill_is_asked_for_once() {
    let fixture = Fixture::new();
    let process = fixture.start("echo up; sleep 60");
    said(&*process, "up").await;
    process.terminate(EndReason::Asked);
    process.terminate(EndReason::Cancelled);
    let ended = process.ended().await;
    assert_eq!(
        ended,
        End {
            asked: asked(EndReason::Asked),
            ..end(signal("SIGTERM"))
        }
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c67_a_kill_after_the_end_changes_nothing() {
    let fixture = Fixture::new();
    let process = fixture.start("exit 5");
    let ended = process.ended().await;
    process.terminate(EndReason::Asked);
    assert_eq!(process.ended().await, ended);
    assert_eq!(ended, end(ShellExit::Code(5)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c11_c68_what_ignores_term_is_killed_after_the_grace() {
    let fixture = Fixture::new();
    let process = fixture.start("trap '' TERM; echo armed; while :; do sleep 0.05; done");
    said(&*process, "armed").await;
    process.terminate(EndReason::Asked);
    assert_eq!(process.ended().await.exit, signal("SIGKILL"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c70_a_signal_of_its_own_was_asked_for_by_nobody() {
    let fixture = Fixture::new();
    let process = fixture.start("kill -TERM $$");
    assert_eq!(process.ended().await, end(signal("SIGTERM")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c71_c300_c301_c356_c361_a_failed_spawn_can_be_read() {
    let fixture = Fixture::new();
    let request = BashRequest {
        env: [("PATH".into(), "/nowhere".into())].into(),
        ..fixture.request("echo no")
    };
    let process = fixture.start_request(request);
    let ShellExit::Failed { reason } = process.ended().await.exit else {
        unreachable!()
    };
    assert!(reason.starts_with("spawn failed: "), "{reason}");
    assert_eq!(text(&*process), format!("[stderr]\n{reason}"));
    assert_eq!(process.shell_ended().await.exit, process.ended().await.exit);
    // One that has failed, and one whose failure nobody has seen yet.
    fixture.start("exit 0");
    let request = BashRequest {
        env: [("PATH".into(), "/nowhere".into())].into(),
        ..fixture.request("echo no")
    };
    let unseen = fixture.start_request(request);
    fixture.scope.close().await.unwrap();
    assert!(matches!(unseen.ended().await.exit, ShellExit::Failed { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_instant_of_the_start_is_kept() {
    let fixture = Fixture::new();
    let process = fixture.start("sleep 60");
    process.terminate(EndReason::Asked);
    let ended = process.ended().await;
    assert_eq!(
        ended,
        End {
            asked: asked(EndReason::Asked),
            ..end(signal("SIGTERM"))
        }
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_ends_the_process_and_says_so() {
    let fixture = Fixture::new();
    let request = BashRequest {
        timeout_ms: Some(200.0),
        ..fixture.request("sleep 60")
    };
    let spec = fixture.bash.resolve(request).unwrap();
    let process = fixture.bash.start(&spec).unwrap();
    let ended = ended_within(&*process, spec.deadline).await;
    let reason = EndReason::TimedOut {
        after: Duration::from_millis(200),
    };
    assert_eq!(
        ended,
        End {
            asked: asked(reason),
            ..end(signal("SIGTERM"))
        }
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c72_c286_closing_waits_for_what_ignores_term_foreground_too() {
    let fixture = Fixture::new();
    let stubborn = "trap '' TERM; echo $$ > PID.new; mv PID.new PID; while :; do sleep 0.05; done";
    let process = fixture.start(&stubborn.replace("PID", "background"));
    let foreground = stubborn.replace("PID", "foreground");
    let run = fixture.run(&foreground);
    let close = async {
        let background = crate::fixture::pid_in(&fixture.file("background")).await;
        let foreground = crate::fixture::pid_in(&fixture.file("foreground")).await;
        fixture.scope.close().await.unwrap();
        assert!(dsh_testkit::process::is_gone(background), "closing waited");
        assert!(dsh_testkit::process::is_gone(foreground), "closing waited");
    };
    let (result, ()) = tokio::join!(run, close);
    assert_eq!(result.exit, signal("SIGKILL"));
    let ended = process.ended().await;
    assert_eq!(
        ended,
        End {
            asked: asked(EndReason::Disposed),
            ..end(signal("SIGKILL"))
        }
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c73_c299_closing_leaves_what_has_ended_as_it_was() {
    let fixture = Fixture::new();
    let finished = fixture.start("true");
    finished.ended().await;
    let running = fixture.start("echo up; sleep 60");
    said(&*running, "up").await;
    fixture.scope.close().await.unwrap();
    assert_eq!(finished.ended().await, end(ShellExit::Code(0)));
    assert_eq!(
        running.ended().await,
        End {
            asked: asked(EndReason::Disposed),
            ..end(signal("SIGTERM"))
        }
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hurry_skips_the_grace_that_runs_and_every_later_one() {
    let fixture = Fixture::with(dsh_bash_local::LocalBashConfig {
        grace_ms: 60_000.0,
        ..crate::fixture::config()
    });
    let stubborn = "trap '' TERM; echo armed; while :; do sleep 0.05; done";
    let (first, second) = (fixture.start(stubborn), fixture.start(stubborn));
    said(&*first, "armed").await;
    said(&*second, "armed").await;
    let began = Instant::now();
    first.terminate(EndReason::Asked);
    fixture.bash.hurry();
    assert_eq!(first.ended().await.exit, signal("SIGKILL"));
    assert!(
        !matches!(second.state(), ProcessState::Ended(_)),
        "nobody asked for this one"
    );
    second.terminate(EndReason::Asked);
    assert_eq!(second.ended().await.exit, signal("SIGKILL"));
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_that_meets_the_exit_tells_one_consistent_end() {
    let fixture = Fixture::new();
    for round in 0..40 {
        let process = fixture.start(&format!("sleep 0.0{:02}", round % 20));
        eventually("started", || process.state() != ProcessState::Starting).await;
        tokio::time::sleep(Duration::from_millis(round % 20)).await; // sleep: to meet the exit from both sides
        process.terminate(EndReason::Asked);
        let ended = process.ended().await;
        let possible = match (&ended.asked, &ended.exit) {
            (None, ShellExit::Code(0)) => true,
            (Some(asked), ShellExit::Code(0)) => asked.reason == EndReason::Asked,
            (Some(asked), exit) => asked.found == Found::ShellRunning && *exit == signal("SIGTERM"),
            (None, _) => false,
        };
        assert!(possible, "{ended:?}");
        assert_eq!(process.state(), ProcessState::Ended(ended));
    }
}
