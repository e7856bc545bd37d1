//! Ends of whole groups, and what is left outside them.

use std::time::{Duration, Instant};

use dsh_bash::{Asked, BashExecutor, EndReason, Found, Pipe, ProcessState, ShellExit, ended_within};
use dsh_bash_local::LocalBashConfig;
use dsh_scope::within;
use dsh_testkit::process::{gone, is_gone, open_fds, zombie_children};
use dsh_testkit::{eventually, process::Marker};

use crate::fixture::{Fixture, config, pid_in, said, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c12_c313_c345_a_kill_takes_the_children_along() {
    let fixture = Fixture::new();
    let process = fixture.start("sleep 60 & echo $! > pid; wait");
    let child = pid_in(&fixture.file("pid")).await;
    process.terminate(EndReason::Asked);
    let end = process.ended().await;
    assert_eq!(
        end.exit,
        ShellExit::Signal {
            name: "SIGTERM".into(),
            core_dumped: false
        }
    );
    assert!(is_gone(child) && end.survivors.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_helper_that_ignores_term_is_killed_although_the_shell_left_at_once() {
    let fixture = Fixture::new();
    let helper = r#"bash -c 'trap "" TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.05; done' >/dev/null 2>&1"#;
    for shell in [
        format!("{helper} & wait"),
        format!("trap 'exit 0' TERM; {helper} & wait"),
    ] {
        let process = fixture.start(&shell);
        let child = pid_in(&fixture.file("pid")).await;
        process.terminate(EndReason::Asked);
        let end = process.ended().await;
        assert!(is_gone(child), "the end is the end of the group");
        assert!(end.survivors.is_empty());
        std::fs::remove_file(fixture.file("pid")).unwrap();
    }
}

/// Ignores TERM, and holds no pipe of its shell.
const SURVIVOR: &str = "(trap '' TERM; echo $BASHPID > pid.new; mv pid.new pid; while :; do sleep 0.05; done) \
                        >/dev/null 2>&1 & until [ -e pid ]; do sleep 0.01; done; exit 0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c346_c349_a_bounded_wait_is_in_vain_while_a_survivor_lives() {
    let fixture = Fixture::new();
    let process = fixture.start(SURVIVOR);
    assert_eq!(process.shell_ended().await.exit, ShellExit::Code(0));
    let survivor = pid_in(&fixture.file("pid")).await;
    assert!(within(Duration::from_millis(50), process.ended()).await.is_none());
    assert!(!is_gone(survivor));
    process.terminate(EndReason::Asked);
    assert!(process.ended().await.survivors.is_empty());
    assert!(is_gone(survivor));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c350_closing_waits_for_a_survivor_that_ignores_term() {
    for fixture in [Fixture::new(), Fixture::guarded()] {
        let process = fixture.start(SURVIVOR);
        process.shell_ended().await;
        let survivor = pid_in(&fixture.file("pid")).await;
        fixture.scope.close().await.unwrap();
        assert!(is_gone(survivor));
        let asked = process.ended().await.asked.unwrap();
        assert_eq!(
            (asked.reason, asked.found),
            (EndReason::Disposed, Found::ShellExited)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c297_c298_closing_ends_what_runs_by_term_and_keeps_what_it_said() {
    let fixture = Fixture::new();
    let process = fixture.start("echo up; exec sleep 60");
    said(&*process, "up").await;
    fixture.scope.close().await.unwrap();
    let term = ShellExit::Signal {
        name: "SIGTERM".into(),
        core_dumped: false,
    };
    assert_eq!(process.ended().await.exit, term);
    assert_eq!(text(&*process), "up\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_happens_after_an_end() {
    let fixture = Fixture::new();
    let process = fixture.start("for i in $(seq 1000); do sleep 0.05; echo x >> mark; done");
    eventually("first mark", || fixture.file("mark").exists()).await;
    process.terminate(EndReason::Asked);
    process.ended().await;
    let size = || std::fs::metadata(fixture.file("mark")).unwrap().len();
    let at_the_end = size();
    // Two more commands take longer than one round of the loop would.
    fixture.run("sleep 0.15").await;
    assert_eq!(size(), at_the_end);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c17_c319_a_foreground_shell_that_leaves_a_member_with_the_pipes() {
    let fixture = Fixture::new();
    let began = Instant::now();
    let result = fixture.run("sleep 60 & echo $! > pid; echo shell-done").await;
    assert!(began.elapsed() < Duration::from_secs(2), "the drain is bounded");
    assert_eq!(
        (result.exit, result.stdout.text.as_str()),
        (ShellExit::Code(0), "shell-done\n")
    );
    let child = pid_in(&fixture.file("pid")).await;
    assert_eq!(
        result.left.iter().map(|member| member.pid).collect::<Vec<_>>(),
        [child]
    );
    assert!(result.left[0].command.contains("sleep"), "{:?}", result.left);
    assert_eq!(result.pipe, Pipe::HeldByMember);
    assert!(!is_gone(child));

    result.process.terminate(EndReason::Asked);
    let end = result.process.ended().await;
    assert!(is_gone(child));
    assert_eq!(
        end.asked,
        Some(Asked {
            reason: EndReason::Asked,
            found: Found::ShellExited
        })
    );
    assert_eq!((end.exit, end.pipe), (ShellExit::Code(0), Pipe::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_the_pipes_is_left_too() {
    let fixture = Fixture::new();
    let result = fixture.run("nohup sleep 60 >/dev/null 2>&1 & echo $!").await;
    assert_eq!(result.left.len(), 1);
    assert_eq!(result.pipe, Pipe::Closed);
    assert_eq!(result.stdout.text.trim(), result.left[0].pid.to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_just_going_is_not_left() {
    let fixture = Fixture::new();
    for _ in 0..5 {
        let result = fixture.run("sleep 60 & kill $!").await;
        assert_eq!((result.left, result.pipe), (Vec::new(), Pipe::Closed));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_shell_that_exits_is_not_the_end() {
    let fixture = Fixture::new();
    let command = "(until [ -e go ]; do sleep 0.01; done; echo late; exec sleep 0.05) & echo early; exit 4";
    let process = fixture.start(command);
    eventually("shell exited", || {
        matches!(process.state(), ProcessState::ShellExited { .. })
    })
    .await;
    let ProcessState::ShellExited { exit, members } = process.state() else {
        unreachable!()
    };
    assert_eq!(exit, ShellExit::Code(4));
    assert!(!members.is_empty());
    // What a live member writes after the drain still arrives.
    assert_eq!(process.shell_ended().await.pipe, Pipe::HeldByMember);
    std::fs::write(fixture.file("go"), "").unwrap();
    let end = process.ended().await;
    assert_eq!(
        (end.exit, end.asked, end.pipe),
        (ShellExit::Code(4), None, Pipe::Closed)
    );
    assert_eq!(text(&*process), "early\nlate\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_after_the_exit_ends_what_is_left() {
    let fixture = Fixture::new();
    let process = fixture.start("sleep 60 & exit 0");
    let end = ended_within(&*process, Some(Duration::from_millis(400))).await;
    let reason = EndReason::TimedOut {
        after: Duration::from_millis(400),
    };
    assert_eq!(
        end.asked,
        Some(Asked {
            reason,
            found: Found::ShellExited
        })
    );
    assert_eq!(end.exit, ShellExit::Code(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c355_a_pipe_held_outside_the_tree_is_told_and_closed() {
    let fixture = Fixture::new();
    let began = Instant::now();
    let result = fixture.run("setsid sleep 60 & echo $! > pid; echo hi").await;
    let outsider = pid_in(&fixture.file("pid")).await;
    assert!(
        began.elapsed() >= Duration::from_millis(200),
        "the grace of these tests"
    );
    assert!(began.elapsed() < Duration::from_secs(5), "at most the grace");
    assert_eq!(
        (result.exit, result.pipe),
        (ShellExit::Code(0), Pipe::HeldOutside)
    );
    assert_eq!(result.stdout.text, "hi\n");
    result.process.ended().await;
    assert!(result.process.output().is_closed());
    assert!(
        !is_gone(outsider),
        "a process outside the group is not ours to end"
    );
    fixture.kill(outsider).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_does_not_wait_for_an_outsider_and_closes_our_ends() {
    // The grace would be half a minute; the kill must not wait for it.
    let fixture = Fixture::with(LocalBashConfig {
        grace_ms: 30_000.0,
        ..config()
    });
    let outsider = "bash -c 'echo $$ > pid.new; mv pid.new pid; trap \"\" PIPE; until ! echo x 2>/dev/null; do sleep 0.02; done; touch broken'";
    let process = fixture.start(&format!("setsid {outsider} & wait"));
    let pid = pid_in(&fixture.file("pid")).await;
    let began = Instant::now();
    process.terminate(EndReason::Asked);
    let end = process.ended().await;
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(end.pipe, Pipe::HeldOutside);
    eventually("the outsider's pipe is broken", || {
        fixture.file("broken").exists()
    })
    .await;
    gone(pid).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outsider_that_never_stops_writing_does_not_keep_the_call() {
    let fixture = Fixture::new();
    let began = Instant::now();
    let result = fixture
        .run("setsid yes & echo $! > pid; sleep 0.05; exit 0")
        .await;
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(result.pipe, Pipe::HeldOutside);
    // Our closed end ends it.
    gone(pid_in(&fixture.file("pid")).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tee_that_outlives_the_exec_keeps_its_last_words() {
    // However slow the machine is, the members end within this drain.
    let fixture = Fixture::with(LocalBashConfig {
        drain_ms: 15_000.0,
        ..config()
    });
    let result = fixture
        .run("exec > >(cat; sleep 0.1; echo last) 2>&1; echo hi")
        .await;
    assert_eq!(result.stdout.text, "hi\nlast\n");
    assert_eq!(result.pipe, Pipe::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_control_of_the_shell_is_not_relied_on() {
    let fixture = Fixture::new();
    let process = fixture.start("yes >/dev/null & kill %1 2>/dev/null; exec sleep 60 & echo up");
    said(&*process, "up").await;
    process.shell_ended().await;
    process.terminate(EndReason::Asked);
    assert!(process.ended().await.survivors.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_children_of_one_shell_end_with_it() {
    let fixture = Fixture::new();
    let marker = Marker::new();
    let mut request = fixture.request("for i in $(seq 39); do yes >/dev/null & done; echo up; wait");
    request.env.extend([marker.env()]);
    let process = fixture.start_request(request);
    said(&*process, "up").await;
    process.terminate(EndReason::Asked);
    process.ended().await;
    assert_eq!(marker.survivors(), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn descriptors_and_zombies_do_not_pile_up() {
    let fixture = Fixture::new();
    fixture.run("true").await;
    let before = open_fds().len();
    for _ in 0..20 {
        fixture.run("echo x").await;
        let process = fixture
            .bash
            .start(&fixture.bash.resolve(fixture.request("sleep 60")).unwrap())
            .unwrap();
        process.terminate(EndReason::Asked);
        process.ended().await;
    }
    eventually("descriptors are back", || open_fds().len() <= before).await;
    eventually("no zombies", || zombie_children().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn last_words_around_the_drains_end_are_not_lost() {
    // The members go just before, at and just after the bound of the drain.
    let fixture = Fixture::with(LocalBashConfig {
        drain_ms: 100.0,
        grace_ms: 60.0,
        ..config()
    });
    for wait in ["0.05", "0.09", "0.1", "0.11", "0.13", "0.16"] {
        let result = fixture
            .run(&format!("(sleep {wait}; echo last) & echo first"))
            .await;
        let end = result.process.ended().await;
        assert_eq!(end.pipe, Pipe::Closed, "{wait}");
        assert_eq!(text(&*result.process), "first\nlast\n", "{wait}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_tree_ends_politely() {
    let fixture = Fixture::with(LocalBashConfig {
        grace_ms: 30_000.0,
        ..config()
    });
    let process = fixture.start("echo $$ > pid.new; mv pid.new pid; kill -STOP $$; sleep 60");
    let pid = pid_in(&fixture.file("pid")).await;
    let stat = format!("/proc/{pid}/stat");
    eventually("stopped", || {
        std::fs::read_to_string(&stat).unwrap().contains(") T ")
    })
    .await;
    process.terminate(EndReason::Asked);
    let end = process.ended().await;
    assert_eq!(
        end.exit,
        ShellExit::Signal {
            name: "SIGTERM".into(),
            core_dumped: false
        }
    );
}
