//! Calls that wait.

use dsh_bash_local::LocalBashConfig;
use dsh_testkit::process::is_gone;
use dsh_tool_bash::{OutputLayout, ToolBashConfig};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::harness::{Harness, Setup, agent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c74_to_c77_results_are_output_then_markers() {
    let harness = Harness::new();
    for (command, text) in [
        ("echo hello", "hello\n"),
        ("true", "(no output)"),
        ("echo out; echo err >&2", "out\n[stderr]\nerr\n"),
        ("echo failing; exit 3", "failing\n[exit code: 3]"),
        ("kill -KILL $$", "(no output)\n[killed by signal: SIGKILL]"),
        ("kill -TERM $$", "(no output)\n[killed by signal: SIGTERM]"),
    ] {
        assert_eq!(harness.foreground(command).await, text, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c78_a_timeout_is_a_result() {
    let harness = Harness::new();
    let args = json!({ "command": "sleep 60", "description": "sleep", "timeoutMs": 100 });
    let result = harness.call(args).await;
    assert!(!result.is_error);
    assert_eq!(
        result.single_text().unwrap(),
        "(no output)\n[timed out after 100ms]\n[killed by signal: SIGTERM]"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_ends_subshells_that_spin() {
    let harness = Harness::new();
    let command = "echo before; ( echo $BASHPID > pid; while :; do :; done ) & wait";
    let args = json!({ "command": command, "description": "spin", "timeoutMs": 1500 });
    let result = harness.call(args).await;
    assert_eq!(
        result.single_text().unwrap(),
        "before\n[timed out after 1500ms]\n[killed by signal: SIGTERM]"
    );
    assert!(is_gone(harness.pid("pid").await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c79_a_timeout_with_a_clean_exit_has_no_exit_marker() {
    let harness = Harness::new();
    let command = "trap 'exit 0' TERM; echo up; sleep 60 & wait";
    let args = json!({ "command": command, "description": "trap", "timeoutMs": 1500 });
    let result = harness.call(args).await;
    assert_eq!(result.single_text().unwrap(), "up\n[timed out after 1500ms]");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c80_long_output_names_the_file_and_keeps_its_end() {
    let bash = LocalBashConfig {
        max_output_bytes: 400.0,
        ..Setup::default().bash
    };
    let harness = Setup {
        bash,
        ..Setup::default()
    }
    .harness();
    let command = "for i in $(seq 500); do echo line-$i; done";
    let text = harness.foreground(command).await;
    assert!(
        text.starts_with("line-1\n") && text.ends_with("line-500\n"),
        "{text}"
    );
    let (_, note) = text.split_once(" bytes omitted here; full output: ").unwrap();
    let (path, _) = note.split_once(" bytes ").unwrap();

    // The next calls can read it, and it does not stay forever.
    assert_eq!(
        harness.foreground(&format!("tail -n 1 {path}")).await,
        "line-500\n"
    );
    for _ in 0..20 {
        assert!(std::path::Path::new(path).exists());
        harness.foreground(command).await;
    }
    dsh_testkit::eventually("the oldest is gone", || !std::path::Path::new(path).exists()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c81_c117_to_c121_the_directory() {
    let harness = Harness::new();
    let usr = agent(&harness.agents, &harness.scope, "session-2", "/usr".into());
    let pwd = async |caller, workdir: Option<&str>| {
        let mut args = json!({ "command": "pwd -P", "description": "where" });
        if let Some(workdir) = workdir {
            args["workdir"] = json!(workdir);
        }
        let result = harness.call_for(caller, args, CancellationToken::new()).await;
        assert!(!result.is_error, "{result:?}");
        result.single_text().unwrap().trim_end().to_owned()
    };
    let own = harness.dir.path().canonicalize().unwrap();
    assert_eq!(
        pwd(Some(harness.owner.agent()), None).await,
        own.to_str().unwrap()
    );
    assert_eq!(pwd(Some(usr.agent()), None).await, "/usr");
    assert_eq!(pwd(Some(usr.agent()), Some("/")).await, "/");
    assert_eq!(pwd(Some(usr.agent()), Some("lib/..")).await, "/usr");
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    assert_eq!(pwd(None, None).await, here.to_str().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c82_a_bad_directory_is_an_error_that_names_it() {
    let harness = Harness::new();
    for background in [false, true] {
        let args = json!({ "command": "true", "description": "x", "workdir": "missing", "run_in_background": background });
        let result = harness.call(args).await;
        let text = result.single_text().unwrap();
        assert!(result.is_error && text.contains("ENOENT"), "{text}");
        assert!(text.contains(harness.file("missing").to_str().unwrap()), "{text}");
    }
    // The refused start has burned no id.
    assert_eq!(harness.background("true").await.as_str(), "bash-1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c83_c425_a_cancelled_call_ends_its_whole_group() {
    let harness = Harness::new();
    let token = CancellationToken::new();
    let args = json!({ "command": "sleep 60 & echo $! > pid; wait", "description": "sleep" });
    let (result, child) = tokio::join!(
        harness.call_for(Some(harness.owner.agent()), args, token.clone()),
        async {
            let child = harness.pid("pid").await;
            token.cancel();
            child
        }
    );
    assert!(is_gone(child), "the group ended before the call did");
    assert_eq!(result.single_text().unwrap(), "Error: tool call aborted");
    assert_eq!(result.error.unwrap().code, "TOOL_ABORTED");
    assert!(
        harness.tasks.list(Some(harness.owner.agent())).is_empty(),
        "nothing was adopted"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_tells_what_was_printed_until_then() {
    let harness = Harness::new();
    let token = CancellationToken::new();
    let command = "echo 3 of 7 passed; echo slow >&2; echo $$ > pid; exec sleep 60";
    let args = json!({ "command": command, "description": "test" });
    let (result, _) = tokio::join!(
        harness.call_for(Some(harness.owner.agent()), args, token.clone()),
        async {
            harness.pid("pid").await;
            token.cancel();
        }
    );
    assert_eq!(
        result.single_text().unwrap(),
        "Error: tool call aborted\n[output until then]\n3 of 7 passed\n[stderr]\nslow\n"
    );
    assert!(result.is_error);
    assert_eq!(result.error.unwrap().code, "TOOL_ABORTED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c424_the_result_has_a_value_for_programs() {
    let harness = Harness::new();
    let args = json!({ "command": "echo out; echo err >&2; exit 3", "description": "x", "timeoutMs": 5000 });
    let value = harness.call(args).await.value.unwrap();
    assert_eq!(
        value,
        json!({
            "kind": "foreground", "exitCode": 3, "signal": null, "timedOut": false, "aborted": false,
            "timeoutMs": 5000,
            "stdout": { "text": "out\n", "truncated": false },
            "stderr": { "text": "err\n", "truncated": false },
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_too_long_is_an_error_with_the_remedy() {
    let harness = Harness::new();
    let command = format!("true #{}", "x".repeat(140_000));
    let result = harness
        .call(json!({ "command": command, "description": "x" }))
        .await;
    assert!(result.is_error);
    assert_eq!(
        result.single_text().unwrap(),
        "Error: command is too long: 140006 bytes, the limit is 131071; write it to a script file and run that"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_spawn_is_an_error_that_says_so() {
    let harness = Setup {
        ambient: Some(("PATH", "/nowhere")),
        ..Setup::default()
    }
    .harness();
    let result = harness
        .call(json!({ "command": "true", "description": "x" }))
        .await;
    let text = result.single_text().unwrap();
    assert!(
        result.is_error && text.starts_with("Error: spawn failed: cannot run bash: ENOENT"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interleaved_output_is_a_setting() {
    let tool = ToolBashConfig {
        rendering: OutputLayout::Interleaved,
        ..ToolBashConfig::default()
    };
    let harness = Setup {
        tool,
        ..Setup::default()
    }
    .harness();
    let command = "echo a; sleep 0.1; echo b >&2; sleep 0.1; echo c";
    assert_eq!(harness.foreground(command).await, "a\nb\nc\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_is_empty_and_nothing_asks() {
    let harness = Harness::new();
    assert_eq!(harness.foreground("cat; read x; echo read $?").await, "read 1\n");
}
