//! How a user interface shows a delegation.

use dsh_llm::ContentBlock;
use dsh_tools::{CallCard, CardKind, head_within};
use serde_json::Value;

use crate::args::DelegationArgs;

/// The most bytes of a title.
const MAX_TITLE: usize = 200;

/// The call: what is delegated, and to which tool; `None` for arguments that do not decode, as an old log may hold.
pub(crate) fn call(tool: &str, args: &Value) -> Option<CallCard> {
    let args = DelegationArgs::parse(args).ok()?;
    let description: Vec<&str> = args.description.split_whitespace().collect();
    let title = format!("{tool}: {}", description.join(" "));
    Some(CallCard::Generic {
        title: head_within(&title, MAX_TITLE).to_owned(),
        kind: CardKind::Other,
        raw_input: Some(Value::String(args.prompt.clone())),
        content: vec![ContentBlock::text(args.prompt)],
    })
}
