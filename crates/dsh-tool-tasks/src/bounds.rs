//! Fitting a reply or notice into the bytes that its producer allows.
//!
//! What must survive comes first: a read keeps its status line and then the end of the output, a notice keeps
//! the task's id and what to do, an acknowledgement keeps the id.

use dsh_tools::{RESULT_TRUNCATED, bounded_result, head_within, tail_within};

const OUTPUT_TRUNCATED: &str = "\n[output truncated]";
const NOTICE_TRUNCATED: &str = "\n[notice truncated]";

/// A read: `body` on lines of its own, then the status line.
pub(crate) fn read(body: &str, status_line: &str, limit: Option<usize>) -> String {
    let line_end = if body.ends_with('\n') { "" } else { "\n" };
    let whole = format!("{body}{line_end}{status_line}");
    let Some(limit) = limit.filter(|limit| whole.len() > *limit) else {
        return whole;
    };
    let body = body.strip_suffix('\n').unwrap_or(body);
    let body = body.strip_suffix(OUTPUT_TRUNCATED).unwrap_or(body);
    let kept_end = format!("{OUTPUT_TRUNCATED}\n{status_line}");
    let room = limit.saturating_sub(kept_end.len());
    tail_within(&format!("{}{kept_end}", tail_within(body, room)), limit).to_owned()
}

/// A notice: `sentence`, which begins with `through_id`; where it is too long, its start and `action`.
pub(crate) fn notice(sentence: &str, through_id: &str, action: &str, limit: Option<usize>) -> String {
    let Some(limit) = limit.filter(|limit| sentence.len() > *limit) else {
        return sentence.to_owned();
    };
    let action = format!("\n{action}");
    let marked = format!("{NOTICE_TRUNCATED}{action}");
    if through_id.len() + marked.len() <= limit {
        return format!("{}{marked}", head_within(sentence, limit - marked.len()));
    }
    let room = limit.saturating_sub(action.len());
    tail_within(&format!("{}{action}", head_within(through_id, room)), limit).to_owned()
}

/// An acknowledgement: `text`, which has `id` in it; where both do not fit, the id.
pub(crate) fn acknowledgement(text: &str, id: &str, limit: Option<usize>) -> String {
    let Some(limit) = limit.filter(|limit| text.len() > *limit) else {
        return text.to_owned();
    };
    let cut = bounded_result(text, limit);
    if cut.contains(id) {
        return cut;
    }
    let marked = format!("{id}{RESULT_TRUNCATED}");
    if marked.len() <= limit {
        marked
    } else {
        head_within(id, limit).to_owned()
    }
}

#[cfg(test)]
mod tests;
