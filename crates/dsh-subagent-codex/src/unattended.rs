//! Answers to what Codex asks while nobody is there.

use serde_json::{Value, json};

use crate::failure::Fault;
use crate::permission::Fact;

/// An answer, and what is to be told about it.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) result: Value,
    pub(crate) fact: Fact,
}

/// Whether a request may name no turn.
pub(crate) fn may_name_no_turn(method: &str) -> bool {
    method == "mcpServer/elicitation/request"
}

/// The answer to a request of our thread and turn.
///
/// # Errors
///
/// What nobody can answer ends the run.
pub(crate) fn answer(method: &str, params: &Value) -> Result<Answer, Fault> {
    let (result, fact) = match method {
        "item/commandExecution/requestApproval" => {
            decided(params, Fact::CommandCancelled, Fact::CommandDeclined)?
        }
        "item/fileChange/requestApproval" => decided(params, Fact::FileCancelled, Fact::FileDeclined)?,
        "item/permissions/requestApproval" => {
            (json!({"permissions": {}, "scope": "turn"}), Fact::GrantDenied)
        }
        "item/tool/requestUserInput" => (json!({"answers": {}}), Fact::NoUserInput),
        "mcpServer/elicitation/request" => (
            json!({"action": "decline", "content": null, "_meta": null}),
            Fact::ElicitationDeclined,
        ),
        other => return Err(unsupported(other)),
    };
    Ok(Answer { result, fact })
}

pub(crate) fn unsupported(method: &str) -> Fault {
    Fault(format!("unsupported app-server request \"{method}\""))
}

/// An answer that was not offered would be waited for, for ever; where there is a choice, the turn is to end.
fn decided(params: &Value, cancelled: Fact, declined: Fact) -> Result<(Value, Fact), Fault> {
    let (decision, fact) = match &params["availableDecisions"] {
        Value::Null => ("decline", declined),
        Value::Array(offered) if offered.iter().any(|decision| decision == "cancel") => ("cancel", cancelled),
        Value::Array(offered) if offered.iter().any(|decision| decision == "decline") => {
            ("decline", declined)
        }
        Value::Array(_) => {
            return Err(Fault(
                "app-server offered no unattended approval decision".to_owned(),
            ));
        }
        _ => return Err(Fault("invalid approval decisions".to_owned())),
    };
    Ok((json!({ "decision": decision }), fact))
}
