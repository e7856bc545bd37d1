//! What the model is told about the tool.

use dsh_subagent::{ParentContext, ProviderInfo};
use dsh_tasks::Vocabulary;

/// The tool's description; `background` is how the deployment calls background work, if there is any here.
pub(crate) fn description(provider: &ProviderInfo, background: Option<Vocabulary>) -> String {
    let who = match &provider.product {
        Some(product) => format!("{product}, a separate agent"),
        None => "a separate agent".to_owned(),
    };
    let child = match provider.context {
        ParentContext::Fresh => format!(
            "Hand a self-contained piece of work to {who}. It does not see this conversation: give it a complete prompt."
        ),
        ParentContext::CompletedTurns => format!(
            "Hand a piece of work to {who} that inherits this conversation: all completed turns, not the one you are in."
        ),
    };
    let waiting = match background {
        Some(words) => format!(
            "The call waits for it; with `run_in_background: true` you get a {word} id instead, are told when it \
             ends, and use {output} and {kill}.",
            word = words.word(),
            output = words.output_tool(),
            kill = words.kill_tool(),
        ),
        None => "The call waits for it.".to_owned(),
    };
    format!("{child} You get its final answer, not its steps. {waiting} Calls run side by side.")
}

/// What the prompt has to be.
pub(crate) fn prompt(context: ParentContext) -> &'static str {
    match context {
        ParentContext::Fresh => {
            "The whole task: include everything it needs, such as paths, findings so far, and what to answer with."
        }
        ParentContext::CompletedTurns => {
            "The task. The completed turns are known to it: say what to do, and what is new in this turn."
        }
    }
}

/// What the background is.
pub(crate) fn run_in_background(words: Vocabulary) -> String {
    format!(
        "Return a {word} id at once instead of waiting (default false); read it with {output}, stop it with {kill}.",
        word = words.word(),
        output = words.output_tool(),
        kill = words.kill_tool(),
    )
}
