//! The notice surface: an end that nobody read goes into its exact owner's inbox, once.

use dsh_agent::Notice;
use dsh_llm::ContentBlock;
use dsh_session::{Message, MessageSource};
use dsh_tasks::{TaskDone, TaskSnapshot, Vocabulary};

use crate::bounds;
use crate::control::limit_of;

/// Who the notice of an end says it is from.
pub const PLUGIN: &str = "tool-tasks";
/// What sort of message it is.
const FORM: &str = "notice";

/// Puts the notice of an end into its owner's inbox, unless the end was told already. What nobody owns is nobody's
/// news.
pub(crate) fn on_done(vocabulary: Vocabulary, done: TaskDone) {
    let Some(owner) = &done.owner else { return };
    if done.snapshot.reported {
        return;
    }
    let message = Message {
        content: vec![ContentBlock::text(text(vocabulary, &done.snapshot, &done.tail))],
        source: MessageSource::Plugin {
            plugin: PLUGIN.to_owned(),
            form: FORM.to_owned(),
            summary: vocabulary.notice_summary(&done.snapshot),
            subjects: vec![done.snapshot.id.to_string()],
        },
    };
    owner.inbox().inject(Notice {
        key: done.notice_key(),
        message,
    });
}

/// The sentence, then the last lines of output, of which only those are left out that the limit forbids.
pub(crate) fn text(vocabulary: Vocabulary, snapshot: &TaskSnapshot, tail: &str) -> String {
    let limit = limit_of(snapshot.output_limit_bytes);
    let sentence = bounds::notice(
        &vocabulary.notice(snapshot),
        &format!("background {} {}", vocabulary.word(), snapshot.id),
        &format!("Done; {}.", vocabulary.output_tool()),
        limit,
    );
    let lines: Vec<String> = tail.lines().map(|line| format!("\n> {line}")).collect();
    (0..lines.len())
        .map(|first| format!("{sentence}\nlast output:{}", lines[first..].concat()))
        .find(|text| limit.is_none_or(|limit| text.len() <= limit))
        .unwrap_or(sentence)
}
