//! Diagnostics, results and their words.

use dsh_llm::ContentBlock;
use dsh_subagent::{Diagnostic, RunResult, StopReason};

#[test]
fn sm1_a_diagnostic_is_bounded_never_empty_and_cut_between_characters() {
    assert_eq!(Diagnostic::new(""), None);
    let whole = "x".repeat(4096);
    assert_eq!(Diagnostic::new(whole.clone()).unwrap().as_str(), whole);
    let mark = "\n[diagnostic truncated]";
    for character in ["x", "é", "語", "🦀"] {
        let cut = Diagnostic::new(character.repeat(5000)).unwrap();
        let cut = cut.as_str();
        assert!(
            cut.len() <= 4096 && cut.len() > 4096 - character.len(),
            "{}",
            cut.len()
        );
        let kept = cut.strip_suffix(mark).unwrap();
        assert_eq!(kept, character.repeat(kept.len() / character.len()));
    }
}

#[test]
fn a_text_is_its_text_blocks_one_after_the_other() {
    let result = RunResult::failed(StopReason::Error, Diagnostic::new("apart"))
        .with_output(vec![ContentBlock::text("one "), ContentBlock::text("two")]);
    assert_eq!(result.text(), "one two");
    assert_eq!(RunResult::aborted().text(), "");
}

#[test]
fn every_reason_has_its_word() {
    let reasons = [
        StopReason::Completed,
        StopReason::Aborted,
        StopReason::Error,
        StopReason::MaxTokens,
        StopReason::Refusal,
        StopReason::Other("tool-limit".to_owned()),
    ];
    let words: Vec<String> = reasons.iter().map(StopReason::to_string).collect();
    assert_eq!(
        words,
        [
            "completed",
            "aborted",
            "error",
            "max-tokens",
            "refusal",
            "tool-limit"
        ]
    );
}
