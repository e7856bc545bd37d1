//! What commands become under guards.

use std::time::{Duration, Instant};

use dsh_bash::{Asked, EndReason, Found, Pipe, ShellExit};
use dsh_bash_local::{InstallError, LocalBashConfig};
use dsh_subprocess::Cgroups;
use dsh_testkit::eventually;
use dsh_testkit::namespace::not_run;
use dsh_testkit::process::{Marker, is_gone};

use crate::fixture::{Fixture, config, pid_in, said, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_its_own_is_left_in_the_tree_and_ended_with_it() {
    let fixture = Fixture::guarded();
    let result = fixture.run("setsid sleep 60 & echo $! > pid; echo hi").await;
    let child = pid_in(&fixture.file("pid")).await;
    assert_eq!(
        (result.exit, result.pipe),
        (ShellExit::Code(0), Pipe::HeldByMember)
    );
    assert_eq!(
        result.left.iter().map(|member| member.pid).collect::<Vec<_>>(),
        [child]
    );
    assert_eq!(result.stdout.text, "hi\n");
    result.process.terminate(EndReason::Asked);
    let end = result.process.ended().await;
    assert!(is_gone(child));
    assert_eq!((end.exit, end.pipe), (ShellExit::Code(0), Pipe::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_named_by_what_they_run_and_a_subshell_as_one() {
    let fixture = Fixture::guarded();
    let result = fixture
        .run("sleep 60 & (trap '' TERM; read -r _ < <(exec tail -f /dev/null)) & exit 0")
        .await;
    let mut commands: Vec<_> = result.left.into_iter().map(|member| member.command).collect();
    commands.sort();
    assert_eq!(commands, ["[shell]", "sleep 60", "tail -f /dev/null"]);
    result.process.terminate(EndReason::Asked);
    assert!(result.process.ended().await.survivors.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_out_of_the_group_ends_with_a_kill() {
    let fixture = Fixture::guarded();
    let marker = Marker::new();
    let command = "nohup sleep 60 >/dev/null 2>&1 & (setsid bash -c 'trap \"\" TERM; sleep 60 & sleep 60' >/dev/null 2>&1 &)
        set -m; sleep 60 & set +m; sleep 60 & kill -STOP $!; echo up; wait";
    let mut request = fixture.request(command);
    request.env.extend([marker.env()]);
    let process = fixture.start_request(request);
    said(&*process, "up").await;
    eventually("all members", || marker.survivors().len() >= 6).await;
    process.terminate(EndReason::Asked);
    let end = process.ended().await;
    assert_eq!(marker.survivors(), Vec::<u32>::new());
    let asked = Asked {
        reason: EndReason::Asked,
        found: Found::ShellRunning,
    };
    assert_eq!((end.asked, end.survivors.len()), (Some(asked), 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_guard_is_told_with_what_its_supervisor_found() {
    let fixture = Fixture::guarded();
    let marker = Marker::new();
    let mut request = fixture.request("setsid sleep 60 & echo before; kill -9 $PPID; sleep 60");
    request.env.extend([marker.env()]);
    let end = fixture.start_request(request).ended().await;
    let reason = "guard lost; tree seen empty".to_owned();
    assert_eq!(end.exit, ShellExit::Unseen { reason });
    assert_eq!((end.asked, marker.survivors()), (None, Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_lost_after_the_shell_is_told_and_no_exit_code() {
    let fixture = Fixture::guarded();
    let command = "setsid sh -c \"sleep 0.3; kill -9 $PPID; sleep 60\" > /dev/null 2>&1 & exit 0";
    let end = fixture.start(command).ended().await;
    let reason = "guard lost; tree seen empty".to_owned();
    assert_eq!(end.exit, ShellExit::Unseen { reason });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_nobody_could_see_is_told_as_not_proven() {
    let fixture = Fixture::guarded_with(Cgroups::Off);
    let command = "read -r _ _ _ supervisor _ < /proc/$PPID/stat; kill -STOP $supervisor; kill -9 $PPID $supervisor; kill -9 $$";
    let process = fixture.start(command);
    let end = process.ended().await;
    match end.exit {
        ShellExit::Unseen { reason } if end.survivors.is_empty() => {
            assert_eq!(reason, "guard lost; end of the tree not proven");
        }
        // It was seen before it went.
        ShellExit::Unseen { reason } => assert_eq!(reason, "guard lost"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_of_any_length_runs() {
    let fixture = Fixture::guarded();
    let result = fixture
        .run(&format!("x='{}'; echo ${{#x}}", "y".repeat(1_000_000)))
        .await;
    assert_eq!(
        (result.exit, result.stdout.text.as_str()),
        (ShellExit::Code(0), "1000000\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_read_as_those_of_bash_c() {
    let fixture = Fixture::guarded();
    let result = fixture.run("\nno-such-program").await;
    assert_eq!(result.exit, ShellExit::Code(127));
    assert_eq!(
        result.stderr.text,
        "bash: line 2: no-such-program: command not found\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_the_scope_ends_what_left_its_group() {
    let fixture = Fixture::guarded();
    let process = fixture.start("setsid sleep 60 & echo $! > pid; exit 0");
    let child = pid_in(&fixture.file("pid")).await;
    let began = Instant::now();
    fixture.scope.close().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(is_gone(child));
    assert_eq!(
        process.ended().await.asked.map(|asked| asked.reason),
        Some(EndReason::Disposed)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_output_of_a_daemon_arrives() {
    let fixture = Fixture::guarded();
    let command = "(setsid bash -c 'until [ -e go ]; do sleep 0.01; done; echo late' &) ; echo early";
    let process = fixture.start(command);
    assert_eq!(process.shell_ended().await.pipe, Pipe::HeldByMember);
    std::fs::write(fixture.file("go"), "").unwrap();
    let end = process.ended().await;
    assert_eq!((end.exit, end.pipe), (ShellExit::Code(0), Pipe::Closed));
    assert_eq!(text(&*process), "early\nlate\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_was_reached_is_told_with_the_exit_of_the_shell() {
    let config = LocalBashConfig {
        pids_limit: Some(16.0),
        ..config()
    };
    let fixture = match Fixture::try_guarded(Cgroups::Auto, config) {
        Ok(fixture) => fixture,
        Err(InstallError::Limits(missing)) => {
            let test = std::thread::current();
            return not_run(test.name().unwrap(), &missing.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    let command = "for i in {1..40}; do sleep 1 & done; kill -9 $(jobs -p); wait";
    let result = fixture.run(command).await;
    assert_eq!(result.limits_reached, ["limit of 16 processes reached"]);
}
