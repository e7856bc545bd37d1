//! What a client learns about the server.

use crate::client::{Client, core};
use dsh_agent_core::Config;
use dsh_tasks::Vocabulary;
use serde_json::json;

#[tokio::test]
async fn the_server_says_what_it_is_and_how_tasks_are_used() {
    let mut client = Client::silent(core(Config::default()), 1 << 16);
    let hello = client.initialize().await;
    let result = &hello["result"];
    assert_eq!(result["protocolVersion"], "2025-06-18");
    assert_eq!(
        result["serverInfo"],
        json!({"name": "dsh", "version": env!("CARGO_PKG_VERSION")})
    );
    let expected = json!({"resources": {"subscribe": true, "listChanged": true}, "tools": {}});
    assert_eq!(result["capabilities"], expected);
    let instructions = result["instructions"].as_str().unwrap();
    assert!(
        instructions.contains("task_output") && instructions.len() < 3_000,
        "{instructions}"
    );
}

#[tokio::test]
async fn the_tool_list_is_small_and_says_what_tools_do() {
    let mut client = Client::default().await;
    let id = client.request("tools/list", json!({})).await;
    let answer = client.answer(id).await;
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bash", "task_kill", "task_list", "task_output"]);
    assert!(
        answer.to_string().len() < 6_000,
        "{} bytes",
        answer.to_string().len()
    );
    let hint = |tool: usize, hint: &str| tools[tool]["annotations"][hint].as_bool();
    assert_eq!(hint(0, "destructiveHint"), Some(true));
    assert_eq!(
        (hint(1, "readOnlyHint"), hint(1, "destructiveHint")),
        (Some(false), Some(true))
    );
    assert_eq!(hint(2, "readOnlyHint"), Some(true));
    assert!(tools.iter().all(|tool| tool["inputSchema"]["type"] == "object"));
}

#[tokio::test]
async fn the_vocabulary_is_the_deployments() {
    let config = Config {
        vocabulary: Vocabulary::Job,
        ..Config::default()
    };
    let mut client = Client::connected(core(config)).await;
    let args = json!({"command": "exit 0", "description": "test", "run_in_background": true});
    assert_eq!(client.call("bash", args).await, ["started background job bash-1"]);
    let told = client
        .call("job_output", json!({"job_id": "bash-1", "wait": true}))
        .await;
    assert_eq!(told, ["(no new output)\n[status: completed, exit code: 0]"]);
}

#[tokio::test]
async fn without_the_task_tools_a_background_start_is_refused_loudly() {
    let mut config = Config::default();
    config.tool_tasks.enabled = false;
    let mut client = Client::connected(core(config)).await;
    let args = json!({"command": "echo hi", "description": "test", "run_in_background": true});
    let refused = client.call("bash", args).await;
    let text = "Error: run_in_background is disabled for this deployment (tool_tasks.enabled: false)";
    assert_eq!(refused, [text]);
    assert_eq!(client.bash("echo hi").await, ["hi\n"]);
}
