//! What the model is told about the tool.

use dsh_tasks::Vocabulary;

use crate::config::Leftover;

pub(crate) const ORDER: i32 = 105;
/// The habit it asks for.
pub(crate) const GUIDANCE: &str = "Check every bash result for an `[exit code: N]` line and deal with the failure it \
reports before you build on the result.";

/// The tool's description; `background` is how the deployment calls background work, if it has any.
pub(crate) fn description(background: Option<Vocabulary>, leftover: Leftover) -> String {
    let common = "Run a command with `bash -c`. Each call is a fresh shell: only files persist, so set `workdir` \
instead of using cd. Standard input is empty. A failure ends with `[exit code: N]`. Long output keeps its start and \
end; a note says where the rest is (`bytes A-B` of a file, from 0, B included). $DSH_* holds facts about this session.";
    let background_part = match background {
        Some(words) => format!(
            "For servers, watchers and long jobs set `run_in_background: true`: you get a {word} id, are told when it \
ends, and use {output} and {kill}.",
            word = words.word(),
            output = words.output_tool(),
            kill = words.kill_tool(),
        ),
        None => "Background execution is not available.".to_owned(),
    };
    let leftover_part = match leftover {
        Leftover::Adopt => " What a foreground command leaves running is handed to you the same way.",
        Leftover::End => " What a command leaves running is ended.",
        Leftover::Leave => "",
    };
    format!("{common} {background_part}{leftover_part}")
}
