//! What a user interface shows.

use dsh_llm::ContentBlock;
use dsh_tools::{CallCard, CardKind, ResultCard, TerminalExit, ToolError, ToolOutput, ToolResult};
use serde_json::{Value, json};

use crate::harness::Harness;

fn call_card(harness: &Harness, args: &Value) -> Option<CallCard> {
    harness.tools.get("bash").unwrap().present_call(args)
}

fn result_card(harness: &Harness, args: &Value, result: &ToolResult) -> Option<ResultCard> {
    harness.tools.get("bash").unwrap().present_result(args, result)
}

fn terminal(output: &str, exit: TerminalExit) -> Option<ResultCard> {
    Some(ResultCard::Terminal {
        output: output.into(),
        exit: Some(exit),
    })
}

fn block(text: &str) -> Option<ResultCard> {
    Some(ResultCard::Generic {
        title: None,
        content: vec![ContentBlock::text(text)],
    })
}

#[tokio::test]
async fn c130_a_foreground_call_is_a_terminal() {
    let harness = Harness::new();
    let mut args = json!({ "command": "make", "description": "Build" });
    let card = |cwd: Option<&str>| {
        let (title, description) = ("make".to_owned(), Some("Build".to_owned()));
        Some(CallCard::Terminal {
            title,
            description,
            cwd: cwd.map(Into::into),
        })
    };
    assert_eq!(call_card(&harness, &args), card(None));
    for workdir in ["/srv", "sub/dir"] {
        args["workdir"] = json!(workdir);
        assert_eq!(call_card(&harness, &args), card(Some(workdir)));
    }
}

#[tokio::test]
async fn c131_c132_c433_to_c435_a_foreground_result_is_its_output_and_its_exit() {
    let harness = Harness::new();
    let args = json!({ "command": "make", "description": "Build" });
    for (text, output, exit) in [
        ("ok\n\n", "ok\n\n", TerminalExit::Code(0)),
        ("oops\n[exit code: 3]", "oops", TerminalExit::Code(3)),
        (
            "gone\n[killed by signal: SIGKILL]",
            "gone",
            TerminalExit::Signal("SIGKILL".into()),
        ),
        (
            "slow\n[timed out after 100ms]\n[exit code: 143]",
            "slow\n[timed out after 100ms]",
            TerminalExit::Code(143),
        ),
    ] {
        let result = ToolOutput::text(text).into();
        assert_eq!(result_card(&harness, &args, &result), terminal(output, exit));
    }
}

#[tokio::test]
async fn c135_a_background_call_is_a_row_and_a_block() {
    let harness = Harness::new();
    let args = json!({ "command": "make", "description": "Build", "run_in_background": true });
    let card = CallCard::Generic {
        title: "make".into(),
        kind: CardKind::Execute,
        raw_input: Some(json!("make")),
        content: vec![ContentBlock::text("Build")],
    };
    assert_eq!(call_card(&harness, &args), Some(card));
    let result = ToolOutput::text("started background task bash-1\n").into();
    assert_eq!(
        result_card(&harness, &args, &result),
        block("```console\nstarted background task bash-1\n```")
    );
}

#[tokio::test]
async fn c136_to_c138_other_results() {
    let harness = Harness::new();
    let args = json!({ "command": "make", "description": "Build" });
    let error = ToolError::new("no").into();
    assert_eq!(
        result_card(&harness, &args, &error),
        block("```console\nError: no\n```")
    );
    for blocks in [0, 2] {
        let content = vec![ContentBlock::text("x"); blocks];
        let result = ToolOutput {
            content,
            ..ToolOutput::default()
        }
        .into();
        assert_eq!(result_card(&harness, &args, &result), None);
    }
}

#[tokio::test]
async fn c139_malformed_arguments_have_no_card() {
    let harness = Harness::new();
    for args in [json!(null), json!("x"), json!({ "command": 7 }), json!([1])] {
        assert_eq!(call_card(&harness, &args), None);
    }
}
