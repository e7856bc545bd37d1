//! Calls that wait.

use std::time::{Duration, Instant};

use dsh_bash::{BashExecutor, BashRequest, Cut, RunError, ShellExit, StartError};
use dsh_bash_local::{LocalBashConfig, MAX_COMMAND_BYTES};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, config, pid_in};

fn signal(name: &str) -> ShellExit {
    ShellExit::Signal {
        name: name.into(),
        core_dumped: false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c4_a_clean_command() {
    let result = Fixture::new().run("echo hello").await;
    assert_eq!((result.exit, result.cut), (ShellExit::Code(0), None));
    assert_eq!(
        (result.stdout.text.as_str(), result.stderr.text.as_str()),
        ("hello\n", "")
    );
    assert!(!result.stdout.truncated && result.left.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_c6_streams_are_told_apart() {
    let fixture = Fixture::new();
    let only_stderr = fixture.run("echo oops >&2").await;
    assert_eq!(
        (only_stderr.stdout.text.as_str(), only_stderr.stderr.text.as_str()),
        ("", "oops\n")
    );
    let both = fixture.run("echo out; echo err >&2").await;
    assert_eq!(
        (both.stdout.text.as_str(), both.stderr.text.as_str()),
        ("out\n", "err\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c7_exit_codes_are_the_shells_own() {
    let fixture = Fixture::new();
    for (command, code) in [
        ("exit 42", 42),
        ("no-such-command-anywhere", 127),
        ("/etc/passwd", 126),
        ("bash -c 'kill -TERM $$'; exit $?", 143),
        ("false | cat", 0),
        ("--version", 127),
        ("-c 'exit 3'", 127),
    ] {
        assert_eq!(
            fixture.run(command).await.exit,
            ShellExit::Code(code),
            "{command}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c37_c54_a_signal_that_the_command_sent_itself() {
    let fixture = Fixture::new();
    for (number, name) in [("TERM", "SIGTERM"), ("KILL", "SIGKILL"), ("RTMIN", "SIGRTMIN")] {
        let result = fixture.run(&format!("kill -{number} $$")).await;
        assert_eq!((result.exit, result.cut), (signal(name), None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c9_c47_the_directory_is_the_requests_then_the_configured_one() {
    let fixture = Fixture::with(LocalBashConfig {
        cwd: Some("/tmp".into()),
        ..config()
    });
    let token = CancellationToken::new();
    let configured = fixture
        .run_request(BashRequest::new("pwd"), &token)
        .await
        .unwrap();
    assert_eq!(configured.stdout.text, "/tmp\n");
    let asked = BashRequest {
        workdir: Some("/".into()),
        ..BashRequest::new("pwd")
    };
    assert_eq!(
        fixture.run_request(asked, &token).await.unwrap().stdout.text,
        "/\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c48_without_any_it_is_the_programs_own() {
    let fixture = Fixture::new();
    let result = fixture
        .run_request(BashRequest::new("pwd -P"), &CancellationToken::new())
        .await
        .unwrap();
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    assert_eq!(result.stdout.text.trim_end(), here.to_str().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c15_c55_an_unusable_directory_is_refused_at_the_call() {
    let fixture = Fixture::new();
    let file = fixture.file("file");
    std::fs::write(&file, "").unwrap();
    for (workdir, errno) in [(fixture.file("missing"), "ENOENT"), (file, "ENOTDIR")] {
        let request = BashRequest {
            workdir: Some(workdir.clone()),
            ..BashRequest::new("echo no")
        };
        let refusal = fixture
            .run_request(request, &CancellationToken::new())
            .await
            .err()
            .unwrap();
        assert!(
            matches!(refusal, RunError::Start(StartError::Workdir { .. })),
            "{refusal}"
        );
        let text = refusal.to_string();
        assert!(
            text.contains(errno) && text.contains(workdir.to_str().unwrap()),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_goes_after_the_call_is_a_failed_spawn() {
    let fixture = Fixture::new();
    let spec = fixture.bash.resolve(fixture.request("true")).unwrap();
    let file = fixture.file("shell");
    // No bash on the path: the same late failure, without racing against a directory.
    let mut spec = spec;
    spec.env.insert("PATH".into(), file.to_str().unwrap().into());
    let failure = dsh_bash::run(&fixture.bash, &spec, &CancellationToken::new())
        .await
        .err()
        .unwrap();
    let text = failure.to_string();
    assert!(
        text.starts_with("spawn failed: ") && text.contains("ENOENT"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_too_long_for_one_argument_is_refused_and_the_longest_one_runs() {
    let fixture = Fixture::new();
    let comment = |bytes: usize| format!("echo ran #{}", "x".repeat(bytes - "echo ran #".len()));
    assert_eq!(
        fixture.run(&comment(MAX_COMMAND_BYTES)).await.stdout.text,
        "ran\n"
    );

    let request = fixture.request(&comment(MAX_COMMAND_BYTES + 1));
    let refusal = fixture
        .run_request(request, &CancellationToken::new())
        .await
        .err()
        .unwrap();
    assert_eq!(
        refusal.to_string(),
        "command is too long: 131072 bytes, the limit is 131071; write it to a script file and run that"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c14_c36_a_cancelled_token_starts_nothing() {
    let fixture = Fixture::new();
    let token = CancellationToken::new();
    token.cancel();
    let refusal = fixture
        .run_request(fixture.request("touch ran"), &token)
        .await
        .err()
        .unwrap();
    assert_eq!(refusal.to_string(), "aborted before spawn: aborted");
    fixture.scope.close().await.unwrap();
    assert!(!fixture.file("ran").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c52_a_timeout_ends_the_whole_group_and_keeps_the_output() {
    let fixture = Fixture::new();
    let request = BashRequest {
        timeout_ms: Some(300.0),
        ..fixture.request("echo before; sleep 60 & echo $! > pid; wait")
    };
    let result = fixture
        .run_request(request, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (result.exit, result.cut),
        (signal("SIGTERM"), Some(Cut::TimedOut))
    );
    assert_eq!(result.timeout, Duration::from_millis(300));
    assert_eq!(result.stdout.text, "before\n");
    let child = pid_in(&fixture.file("pid")).await;
    assert!(dsh_testkit::process::is_gone(child), "the group was awaited");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c79_a_timeout_of_a_command_that_leaves_cleanly() {
    let fixture = Fixture::new();
    let request = BashRequest {
        timeout_ms: Some(500.0),
        ..fixture.request("trap 'exit 0' TERM; sleep 60 & wait")
    };
    let result = fixture
        .run_request(request, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (result.exit, result.cut),
        (ShellExit::Code(0), Some(Cut::TimedOut))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c10_c13_c45_c53_cancelling_ends_the_whole_group() {
    let fixture = Fixture::new();
    let token = CancellationToken::new();
    let request = fixture.request("sleep 60 & echo $! > pid; wait");
    let (result, child) = tokio::join!(fixture.run_request(request, &token), async {
        let child = pid_in(&fixture.file("pid")).await;
        token.cancel();
        child
    });
    let result = result.unwrap();
    assert_eq!((result.exit, result.cut), (signal("SIGTERM"), Some(Cut::Aborted)));
    assert!(dsh_testkit::process::is_gone(child), "the group was awaited");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_run_ends_its_command() {
    let fixture = Fixture::new();
    let token = CancellationToken::new();
    let file = fixture.file("pid");
    let child = tokio::select! {
        _ = fixture.run_request(fixture.request("echo $$ > pid; sleep 60"), &token) => unreachable!(),
        pid = pid_in(&file) => pid,
    };
    dsh_testkit::process::gone(child).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_never_hits_a_shell_that_has_exited() {
    // The shell exits at once; an outsider holds the pipe far beyond the timeout, and the drain waits for it.
    let fixture = Fixture::with(LocalBashConfig {
        grace_ms: 1500.0,
        ..config()
    });
    let request = BashRequest {
        timeout_ms: Some(700.0),
        ..fixture.request("setsid sleep 60 & echo $! > pid; exit 3")
    };
    let began = Instant::now();
    let result = fixture
        .run_request(request, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((result.exit, result.cut), (ShellExit::Code(3), None));
    assert!(
        began.elapsed() >= Duration::from_millis(1000),
        "it did wait past the timeout"
    );
    fixture.kill(pid_in(&fixture.file("pid")).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c18_c19_c20_standard_input() {
    let fixture = Fixture::new();
    let with = |text: &str, command: &str| BashRequest {
        stdin: Some(text.into()),
        ..fixture.request(command)
    };
    let token = CancellationToken::new();
    let kind = "if [ -c /dev/stdin ]; then echo device; else echo pipe; fi; cat";
    assert_eq!(fixture.run(kind).await.stdout.text, "device\n");
    let fed = fixture.run_request(with("fed", kind), &token).await.unwrap();
    assert_eq!(fed.stdout.text, "pipe\nfed");
    let empty = fixture.run_request(with("", kind), &token).await.unwrap();
    assert_eq!(empty.stdout.text, "pipe\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c23_input_that_nobody_reads() {
    let fixture = Fixture::new();
    let request = BashRequest {
        stdin: Some("x".repeat(1 << 20)),
        ..fixture.request("exit 7")
    };
    let result = fixture
        .run_request(request, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((result.exit, result.cut), (ShellExit::Code(7), None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_executor_refuses() {
    let fixture = Fixture::new();
    fixture.scope.close().await.unwrap();
    let refusal = fixture
        .run_request(fixture.request("true"), &CancellationToken::new())
        .await
        .err()
        .unwrap();
    assert_eq!(
        refusal.to_string(),
        "bash-local is shut down; no command can be started any more"
    );
}
