//! What a product is asked.

use dsh_llm::ContentBlock;

/// The longest answer that is taken from a product, in bytes. What is longer is no answer.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Why a prompt is no task for a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// It is empty, or has something else than text in it.
    #[error("the one-shot task must contain only text blocks")]
    NotText,
    /// Its texts say nothing.
    #[error("the one-shot task must not be empty")]
    Blank,
}

/// The texts of a task: a product is asked in text alone.
///
/// # Errors
///
/// A [`TaskError`].
pub fn texts(prompt: &[ContentBlock]) -> Result<Vec<&str>, TaskError> {
    let texts: Option<Vec<&str>> = prompt.iter().map(ContentBlock::as_text).collect();
    let texts = texts
        .filter(|texts| !texts.is_empty())
        .ok_or(TaskError::NotText)?;
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(TaskError::Blank);
    }
    Ok(texts)
}
