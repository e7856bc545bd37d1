//! The section of the system prompt: the habits that no single tool description can teach.

use dsh_system_prompt::Section;
use dsh_tasks::Vocabulary;

pub(crate) fn section(vocabulary: Vocabulary) -> Section {
    let (word, output, kill) = (
        vocabulary.word(),
        vocabulary.output_tool(),
        vocabulary.kill_tool(),
    );
    Section::new(
        "tool:tasks",
        106,
        format!(
            "Keep the id of every background {word} you start. When one ends you are told, once, together with \
             something else you receive: do not poll for it and do not sleep. Meanwhile go on with work that does \
             not depend on it, and do not repeat what it is doing. Wait in {output} only when there is nothing \
             else left to do. Before your final answer, read with {output} what still matters and stop with \
             {kill} what does not."
        ),
    )
}
