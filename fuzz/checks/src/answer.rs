//! The body of a model's answer: any pieces of it come to the same, and what comes is well formed.

use std::collections::{BTreeMap, BTreeSet};

use dsh_llm::{Assembler, Chunk, FinishReason, ModelError};
use dsh_llm_openai::read_kept;

use crate::input::{Input, pieces};

/// The most blocks of an answer.
const MAX_BLOCKS: usize = 1024;

/// What an answer came to.
type Read = (Vec<Chunk>, Result<(), ModelError>);

/// The first byte says how the rest, which is the body, is cut.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let seed = input.byte();
    let body = input.rest();
    let whole = read_kept([body]);
    assert_eq!(read_kept(body.chunks(1)), whole, "byte by byte");
    assert_eq!(read_kept(pieces(body, seed)), whole, "in pieces");
    assert_eq!(read_kept([&*rewritten(body)]), whole, "as its events alone");
    well_formed(&whole);
    let mut assembler = Assembler::new();
    for chunk in whole.0 {
        assembler.push(chunk);
    }
    assembler.finish();
}

/// The events of a body, each written in the plainest way: by the words of the specification, with all of it at hand.
fn rewritten(body: &[u8]) -> Vec<u8> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut lines = vec![Vec::new()];
    let mut after_return = false;
    for &byte in body {
        match byte {
            b'\n' if after_return => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            _ => lines.last_mut().unwrap().push(byte),
        }
        after_return = byte == b'\r';
    }
    // What follows the last end of a line is no line.
    lines.pop();
    let (mut out, mut event) = (Vec::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            if !event.is_empty() {
                out.append(&mut event);
                out.push(b'\n');
            }
            continue;
        }
        let mut parts = line.splitn(2, |byte| *byte == b':');
        if parts.next() == Some(b"data") {
            let value = parts.next().unwrap_or_default();
            event.extend_from_slice(b"data: ");
            event.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            event.push(b'\n');
        }
    }
    out
}

/// Blocks are numbered as they begin and keep their kind, an id is had once, and a finish is the last of an answer that is
/// complete.
fn well_formed((chunks, end): &Read) {
    let mut kinds = BTreeMap::new();
    let (mut ids, mut with_id, mut named) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (place, chunk) in chunks.iter().enumerate() {
        let (index, kind) = match chunk {
            Chunk::TextDelta { index, .. } => (*index, "text"),
            Chunk::ReasoningDelta { index, .. } => (*index, "reasoning"),
            Chunk::ToolCallDelta { index, id, name, .. } => {
                if let Some(id) = id {
                    assert!(ids.insert(id.clone()), "two calls have the id {id}");
                    assert!(with_id.insert(*index), "a call has two ids");
                }
                if name.is_some() {
                    assert!(named.insert(*index), "a call has two names");
                }
                (*index, "call")
            }
            Chunk::Usage(_) => {
                assert_eq!(place + 2, chunks.len(), "usage comes before the finish");
                continue;
            }
            Chunk::Finish(_) => {
                assert_eq!(place + 1, chunks.len(), "nothing comes after the finish");
                continue;
            }
            _ => continue,
        };
        let known = kinds.len();
        let before = *kinds.entry(index).or_insert(kind);
        assert!(
            before == kind && index <= known,
            "block {index} is {before}, then {kind}"
        );
    }
    assert!(kinds.len() <= MAX_BLOCKS);
    let finish = match chunks.last() {
        Some(Chunk::Finish(finish)) => Some(finish),
        _ => None,
    };
    assert_eq!(finish.is_some(), end.is_ok(), "{end:?}");
    if finish.is_some() {
        let calls = kinds.values().filter(|kind| **kind == "call").count();
        assert_eq!(with_id.len(), calls, "each call has an id");
        if finish == Some(&FinishReason::ToolCalls) {
            assert!(calls > 0 && named.len() == calls, "each call has a name");
        }
    }
}
