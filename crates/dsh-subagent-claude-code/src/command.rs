//! How Claude Code is started, and the two lines that give it its task.

use dsh_llm::ContentBlock;
use dsh_subagent_process::{TaskError, texts};
use serde_json::{Value, json};

use crate::config::PermissionMode;

/// The id of the one request that we make.
pub(crate) const INITIALIZE: &str = "initialize";

/// The arguments for a conversation in lines of JSON.
pub(crate) fn arguments(mode: PermissionMode) -> Vec<&'static str> {
    let mut args = vec![
        "--output-format",
        "stream-json",
        "--verbose",
        "--input-format",
        "stream-json",
    ];
    // Whoever may do everything asks for nothing.
    if mode != PermissionMode::BypassPermissions {
        args.extend(["--permission-prompt-tool", "stdio"]);
    }
    // Nobody answers questions, and nobody approves a plan.
    let disallowed = match mode {
        PermissionMode::Plan => "AskUserQuestion,ExitPlanMode",
        PermissionMode::DontAsk
        | PermissionMode::AcceptEdits
        | PermissionMode::Auto
        | PermissionMode::BypassPermissions => "AskUserQuestion",
    };
    args.extend(["--disallowedTools", disallowed]);
    args.extend(["--permission-mode", mode.as_str()]);
    if mode == PermissionMode::BypassPermissions {
        args.push("--allow-dangerously-skip-permissions");
    }
    args.push("--no-session-persistence");
    args
}

/// The task as one text: its blocks, one after the other, with nothing between them.
pub(crate) fn task(prompt: &[ContentBlock]) -> Result<String, TaskError> {
    Ok(texts(prompt)?.concat())
}

/// The first lines that it reads. It takes both at once.
pub(crate) fn opening(task: &str) -> [Value; 2] {
    let initialize = json!({"type": "control_request", "request_id": INITIALIZE, "request": {
        "subtype": "initialize", "systemPrompt": [""], "supportedDialogKinds": ["refusal_fallback_prompt"]
    }});
    let user = json!({"type": "user", "session_id": "", "message": {
        "role": "user", "content": [{"type": "text", "text": task}]
    }, "parent_tool_use_id": null});
    [initialize, user]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s217_blocks_are_joined_without_a_separator_and_no_text_is_no_task() {
        let blocks = |texts: &[&str]| -> Vec<ContentBlock> {
            texts.iter().map(|text| ContentBlock::text(*text)).collect()
        };
        assert_eq!(task(&blocks(&["one ", "two", ""])), Ok("one two".to_owned()));
        assert_eq!(task(&blocks(&[])), Err(TaskError::NotText));
        assert_eq!(task(&blocks(&["", " \n"])), Err(TaskError::Blank));
    }

    #[test]
    fn s231_to_s236_each_mode_has_its_arguments() {
        let first = "--output-format stream-json --verbose --input-format stream-json";
        let asking = |mode| {
            format!(
                "{first} --permission-prompt-tool stdio --disallowedTools AskUserQuestion --permission-mode {mode} \
                 --no-session-persistence"
            )
        };
        let expected = [
            (PermissionMode::DontAsk, asking("dontAsk")),
            (PermissionMode::AcceptEdits, asking("acceptEdits")),
            (PermissionMode::Auto, asking("auto")),
            (
                PermissionMode::Plan,
                asking("plan").replace("AskUserQuestion", "AskUserQuestion,ExitPlanMode"),
            ),
            (
                PermissionMode::BypassPermissions,
                format!(
                    "{first} --disallowedTools AskUserQuestion --permission-mode bypassPermissions \
                     --allow-dangerously-skip-permissions --no-session-persistence"
                ),
            ),
        ];
        for (mode, expected) in expected {
            assert_eq!(arguments(mode).join(" "), expected);
        }
    }

    #[test]
    fn s230_the_two_first_lines_are_these() {
        let [initialize, user] = opening("a \"task\"\nin two lines").map(|line| line.to_string());
        assert_eq!(
            initialize,
            r#"{"type":"control_request","request_id":"initialize","request":{"subtype":"initialize","systemPrompt":[""],"supportedDialogKinds":["refusal_fallback_prompt"]}}"#
        );
        assert_eq!(
            user,
            r#"{"type":"user","session_id":"","message":{"role":"user","content":[{"type":"text","text":"a \"task\"\nin two lines"}]},"parent_tool_use_id":null}"#
        );
    }
}
