//! The section of the system prompt: the habits that no single tool description can teach.

use dsh_system_prompt::Section;
use dsh_tasks::Vocabulary;

/// Right behind the section of the bash tool, which is 105.
const ORDER: i32 = 106;

pub(crate) fn section(vocabulary: Vocabulary) -> Section {
    let word = vocabulary.word();
    let (output, list, kill) = (
        vocabulary.output_tool(),
        vocabulary.list_tool(),
        vocabulary.kill_tool(),
    );
    let text = format!(
        "Keep the id of every background {word} you start; {list} shows the ids again. When one ends you are told, \
         once, together with something else you receive: do not poll for it and do not sleep. Meanwhile go on with \
         work that does not depend on it, and do not repeat what it is doing. Wait in {output} only when there is \
         nothing else left to do. Before your final answer, read with {output} what still matters and stop with \
         {kill} what does not."
    );
    Section::new("tool:tasks", ORDER, text)
}
