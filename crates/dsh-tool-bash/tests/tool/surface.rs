//! What the model is shown.

use expect_test::expect;

use crate::harness::Harness;

#[tokio::test]
async fn c87_c91_c140_one_small_tool() {
    let harness = Harness::new();
    let definitions = harness.tools.definitions();
    assert_eq!(definitions.len(), 1);
    let definition = &definitions[0];
    assert_eq!(definition.name, "bash");
    assert!(definition.description.contains("task_output") && definition.description.contains("$DSH_*"));
    let json = serde_json::to_string(definition).unwrap();
    assert!(json.len() <= 1600, "{} bytes", json.len());
    expect![[r#"
        {
          "name": "bash",
          "description": "Run a command with `bash -c`. Each call is a fresh shell: only files persist, so set `workdir` instead of using cd. Standard input is empty. A failure ends with `[exit code: N]`. Long output keeps its start and end; a note says where the rest is (`bytes A-B` of a file, from 0, B included). $DSH_* holds facts about this session. For servers, watchers and long jobs set `run_in_background: true`: you get a task id, are told when it ends, and use task_output and task_kill. What a foreground command leaves running is handed to you the same way.",
          "inputSchema": {
            "type": "object",
            "properties": {
              "command": {
                "type": "string",
                "description": "Shell text."
              },
              "description": {
                "type": "string",
                "description": "What it does, in 5 to 10 words for the user, e.g. \"Run the unit tests\", \"List open ports\"."
              },
              "timeoutMs": {
                "type": "number",
                "description": "Milliseconds until the command and all it started are ended; background commands have none unless set."
              },
              "workdir": {
                "type": "string",
                "description": "Directory to run in; relative paths start at the session's."
              },
              "run_in_background": {
                "type": "boolean",
                "description": "Return an id at once instead of waiting."
              }
            },
            "required": [
              "command",
              "description"
            ]
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "openWorldHint": true
          }
        }"#]].assert_eq(&serde_json::to_string_pretty(definition).unwrap());
}

#[tokio::test]
async fn c88_c89_the_habit_is_in_the_prompt_as_long_as_the_tool_is_there() {
    let harness = Harness::new();
    let section = harness
        .prompts
        .sections()
        .into_iter()
        .find(|section| section.name == "tool:bash")
        .unwrap();
    assert_eq!(section.order, 105);
    assert!(section.text.contains("[exit code: N]"));
    harness.handle.uninstall().await.unwrap();
    assert!(harness.tools.definitions().is_empty());
    assert!(harness.prompts.sections().is_empty());
}
