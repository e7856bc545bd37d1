use proptest::prelude::*;

use super::*;

fn text(index: usize, text: &str) -> Chunk {
    Chunk::TextDelta {
        index,
        text: text.to_owned(),
    }
}

fn call(index: usize, id: Option<&str>, name: Option<&str>, arguments: &str) -> Chunk {
    Chunk::ToolCallDelta {
        index,
        id: id.map(CallId::new),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    }
}

fn answer(chunks: impl IntoIterator<Item = Chunk>) -> Answer {
    let mut assembler = Assembler::new();
    chunks.into_iter().for_each(|chunk| assembler.push(chunk));
    assembler.finish()
}

#[test]
fn deltas_are_put_together_by_index() {
    let answer = answer([
        call(1, Some("c1"), Some("bash"), "{\"a\""),
        text(0, "I "),
        call(1, None, None, ":1}"),
        text(0, "look."),
        Chunk::Finish(FinishReason::ToolCalls),
    ]);
    assert_eq!(
        answer.content,
        [
            AssistantBlock::Text {
                text: "I look.".to_owned()
            },
            AssistantBlock::ToolCall(ToolCall {
                id: CallId::new("c1"),
                name: "bash".to_owned(),
                arguments: "{\"a\":1}".to_owned()
            })
        ]
    );
    assert_eq!(answer.finish, Some(FinishReason::ToolCalls));
}

#[test]
fn the_first_end_of_a_block_wins_over_deltas_and_later_ends() {
    let block = |text: &str| AssistantBlock::Text {
        text: text.to_owned(),
    };
    let end = |text: &str| Chunk::BlockEnd {
        index: 0,
        block: block(text),
    };
    assert_eq!(
        answer([text(0, "x"), end("whole"), text(0, "y"), end("other")]).content,
        [block("whole")]
    );
}

#[test]
fn a_stream_without_a_finish_says_so() {
    assert_eq!(answer([text(0, "half")]).finish, None);
}

#[test]
fn nothing_counts_after_the_finish() {
    let answer = answer([Chunk::Finish(FinishReason::Stop), text(0, "late")]);
    assert!(answer.content.is_empty());
}

#[test]
fn empty_blocks_and_nameless_calls_are_left_out() {
    assert!(
        answer([text(0, ""), call(1, Some("c"), None, "{}")])
            .content
            .is_empty()
    );
}

proptest! {
    /// However a text is cut into deltas, the same text comes out.
    #[test]
    fn any_split_gives_the_same_text(pieces in prop::collection::vec(".{0,5}", 0..20)) {
        let answer = answer(pieces.iter().map(|piece| text(3, piece)));
        let whole = pieces.concat();
        let expected: Vec<_> = (!whole.is_empty()).then_some(AssistantBlock::Text { text: whole }).into_iter().collect();
        prop_assert_eq!(answer.content, expected);
    }
}
