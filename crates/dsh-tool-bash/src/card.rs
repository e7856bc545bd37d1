//! How a user interface shows calls and results.

use std::path::PathBuf;

use dsh_llm::ContentBlock;
use dsh_tools::{CallCard, CardKind, ResultCard, ToolResult};
use serde_json::Value;

use crate::args::BashArgs;
use crate::render::parse_exit;

/// The call; `None` for arguments that do not decode, as an old log may hold.
pub(crate) fn call(args: &Value) -> Option<CallCard> {
    let args = BashArgs::parse(args).ok()?;
    Some(if args.in_background() {
        let place = args
            .workdir
            .map(|workdir| ContentBlock::text(format!("in {workdir}")));
        CallCard::Generic {
            title: args.command.clone(),
            kind: CardKind::Execute,
            raw_input: Some(Value::String(args.command)),
            content: [ContentBlock::text(args.description)]
                .into_iter()
                .chain(place)
                .collect(),
        }
    } else {
        CallCard::Terminal {
            title: args.command,
            description: Some(args.description),
            cwd: args.workdir.map(PathBuf::from),
        }
    })
}

/// The result: a terminal with its exit for a foreground command, a plain block for everything else.
pub(crate) fn result(args: &Value, result: &ToolResult) -> Option<ResultCard> {
    let text = result.single_text()?;
    let background = args.get("run_in_background").and_then(Value::as_bool) == Some(true);
    if result.is_error || background {
        let block = format!("```console\n{}\n```", text.trim_end_matches('\n'));
        return Some(ResultCard::Generic {
            title: None,
            content: vec![ContentBlock::text(block)],
        });
    }
    let (output, exit) = parse_exit(text);
    Some(ResultCard::Terminal {
        output: output.to_owned(),
        exit: Some(exit),
    })
}
