//! What gets into a request, and what does not.

use dsh_tool_bash::ToolBashConfig;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::harness::{Harness, Setup};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c84_wrong_types_are_named() {
    let harness = Harness::new();
    for (args, message) in [
        (
            json!({ "description": "x" }),
            "missing required property \"command\"",
        ),
        (
            json!({ "command": 42, "description": "x" }),
            "\"command\" must be a string",
        ),
        (
            json!({ "command": "true" }),
            "missing required property \"description\"",
        ),
        (
            json!({ "command": "true", "description": 7 }),
            "\"description\" must be a string",
        ),
        (
            json!({ "command": "true", "description": "x", "timeoutMs": "soon" }),
            "\"timeoutMs\" must be a number",
        ),
        (
            json!({ "command": "true", "description": "x", "workdir": 7 }),
            "\"workdir\" must be a string",
        ),
        (
            json!({ "command": "true", "description": "x", "run_in_background": "yes" }),
            "\"run_in_background\" must be a boolean",
        ),
    ] {
        let result = harness.call(args).await;
        assert!(result.is_error);
        assert_eq!(
            result.single_text().unwrap(),
            format!("Error: invalid arguments: {message}")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c85_wrong_values_are_named() {
    let harness = Harness::new();
    for (args, message) in [
        (
            json!({ "command": " \n", "description": "x" }),
            "invalid command: expected a non-empty string",
        ),
        (
            json!({ "command": "true", "description": " " }),
            "invalid description: expected a non-empty string",
        ),
        (
            json!({ "command": "true", "description": "x", "timeoutMs": -1 }),
            "invalid timeoutMs: expected a positive number, got -1",
        ),
        (
            json!({ "command": "true", "description": "x", "timeoutMs": 0, "run_in_background": true }),
            "invalid timeoutMs: expected a positive number, got 0",
        ),
        (
            json!({ "command": "echo \u{0}", "description": "x" }),
            "command contains a NUL byte; use an escape such as printf '\\0' to produce one",
        ),
    ] {
        let result = harness.call(args).await;
        assert!(result.is_error);
        assert_eq!(result.single_text().unwrap(), format!("Error: {message}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c141_c144_commands_find_facts_about_their_session() {
    let tool = ToolBashConfig {
        dsh_home: Some("relative".into()),
        ..ToolBashConfig::default()
    };
    let harness = Setup {
        tool,
        ..Setup::default()
    }
    .harness();
    let home = std::env::current_dir().unwrap().join("relative");
    let command = "env | grep ^DSH_ | sort";
    let facts = format!(
        "DSH_HOME={}\nDSH_SESSION_ID=session-1\nDSH_SHELL=1\n",
        home.display()
    );
    assert_eq!(harness.foreground(command).await, facts);
    let id = harness.background(command).await;
    harness.ended(&id).await;
    assert_eq!(harness.read(&id), facts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c143_what_nobody_knows_is_absent() {
    let harness = Harness::new();
    let args = json!({ "command": "env | grep ^DSH_", "description": "x" });
    let result = harness.call_for(None, args, CancellationToken::new()).await;
    assert_eq!(result.single_text().unwrap(), "DSH_SHELL=1\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c142_c145_c146_what_else_a_model_says_goes_nowhere() {
    let harness = Harness::new();
    for background in [false, true] {
        let args = json!({
            "command": "cat; echo $DSH_SESSION_ID $SPOOFED", "description": "x", "run_in_background": background,
            "env": { "DSH_SESSION_ID": "spoofed", "SPOOFED": "yes" }, "dshEnv": { "DSH_SESSION_ID": "spoofed" },
            "stdin": "spoofed", "stdoutMaxBytes": 1,
        });
        let result = harness.call(args).await;
        let text = if background {
            harness.ended(&"bash-1".into()).await;
            harness.read(&"bash-1".into())
        } else {
            result.single_text().unwrap().to_owned()
        };
        assert_eq!(text, "session-1\n");
    }
}
