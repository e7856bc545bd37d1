//! What a model sees of the products that it can delegate to.

use expect_test::{Expect, expect};

use crate::composition::{names, room, server, tools};

/// What a model is told about the tools that delegate, and which others stand beside them.
async fn surface(profile: &str, expected: Expect) {
    let mut server = server(room(), profile, "both", "").await;
    let tools = tools(&mut server).await;
    let mut shown = format!("{}\n", names(&tools).join(" "));
    for tool in tools.iter().filter(|tool| {
        tool["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("subagent"))
    }) {
        shown += &format!("{tool:#}\n");
    }
    expected.assert_eq(&shown);
    server.close().await;
}

#[tokio::test]
async fn schemas_without_a_product() {
    surface(
        "none",
        expect![[r#"
        bash task_kill task_list task_output
    "#]],
    )
    .await;
}

#[tokio::test]
async fn schemas_with_codex() {
    surface("codex", expect![[r#"
        bash subagent_codex task_kill task_list task_output
        {
          "name": "subagent_codex",
          "description": "Hand a self-contained piece of work to Codex, a separate agent. It does not see this conversation: give it a complete prompt. You get its final answer, not its steps. The call waits for it; with `run_in_background: true` you get a task id instead, are told when it ends, and use task_output and task_kill. Calls run side by side.",
          "inputSchema": {
            "type": "object",
            "properties": {
              "description": {
                "type": "string",
                "description": "What is delegated, in 3 to 5 words for the user, e.g. \"Find callers of parse\"."
              },
              "prompt": {
                "type": "string",
                "description": "The whole task: include everything it needs, such as paths, findings so far, and what to answer with."
              },
              "run_in_background": {
                "type": "boolean",
                "description": "Return a task id at once instead of waiting (default false); read it with task_output, stop it with task_kill."
              }
            },
            "required": [
              "description",
              "prompt"
            ]
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "openWorldHint": true
          }
        }
    "#]]).await;
}

#[tokio::test]
async fn schemas_with_claude_code() {
    surface("claude", expect![[r#"
        bash subagent_claude_code task_kill task_list task_output
        {
          "name": "subagent_claude_code",
          "description": "Hand a self-contained piece of work to Claude Code, a separate agent. It does not see this conversation: give it a complete prompt. You get its final answer, not its steps. The call waits for it; with `run_in_background: true` you get a task id instead, are told when it ends, and use task_output and task_kill. Calls run side by side.",
          "inputSchema": {
            "type": "object",
            "properties": {
              "description": {
                "type": "string",
                "description": "What is delegated, in 3 to 5 words for the user, e.g. \"Find callers of parse\"."
              },
              "prompt": {
                "type": "string",
                "description": "The whole task: include everything it needs, such as paths, findings so far, and what to answer with."
              },
              "run_in_background": {
                "type": "boolean",
                "description": "Return a task id at once instead of waiting (default false); read it with task_output, stop it with task_kill."
              }
            },
            "required": [
              "description",
              "prompt"
            ]
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "openWorldHint": true
          }
        }
    "#]]).await;
}

#[tokio::test]
async fn schemas_with_both_products() {
    surface("both", expect![[r#"
        bash subagent_claude_code subagent_codex task_kill task_list task_output
        {
          "name": "subagent_claude_code",
          "description": "Hand a self-contained piece of work to Claude Code, a separate agent. It does not see this conversation: give it a complete prompt. You get its final answer, not its steps. The call waits for it; with `run_in_background: true` you get a task id instead, are told when it ends, and use task_output and task_kill. Calls run side by side.",
          "inputSchema": {
            "type": "object",
            "properties": {
              "description": {
                "type": "string",
                "description": "What is delegated, in 3 to 5 words for the user, e.g. \"Find callers of parse\"."
              },
              "prompt": {
                "type": "string",
                "description": "The whole task: include everything it needs, such as paths, findings so far, and what to answer with."
              },
              "run_in_background": {
                "type": "boolean",
                "description": "Return a task id at once instead of waiting (default false); read it with task_output, stop it with task_kill."
              }
            },
            "required": [
              "description",
              "prompt"
            ]
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "openWorldHint": true
          }
        }
        {
          "name": "subagent_codex",
          "description": "Hand a self-contained piece of work to Codex, a separate agent. It does not see this conversation: give it a complete prompt. You get its final answer, not its steps. The call waits for it; with `run_in_background: true` you get a task id instead, are told when it ends, and use task_output and task_kill. Calls run side by side.",
          "inputSchema": {
            "type": "object",
            "properties": {
              "description": {
                "type": "string",
                "description": "What is delegated, in 3 to 5 words for the user, e.g. \"Find callers of parse\"."
              },
              "prompt": {
                "type": "string",
                "description": "The whole task: include everything it needs, such as paths, findings so far, and what to answer with."
              },
              "run_in_background": {
                "type": "boolean",
                "description": "Return a task id at once instead of waiting (default false); read it with task_output, stop it with task_kill."
              }
            },
            "required": [
              "description",
              "prompt"
            ]
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "openWorldHint": true
          }
        }
    "#]]).await;
}
