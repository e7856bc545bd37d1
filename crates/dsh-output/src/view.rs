//! One reply: which bytes of the log it takes, what is missing, and the text of both.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use crate::carry::Carry;
use crate::render::{unfinished, unfinished_utf8};
use crate::runs::Span;
use crate::window::overlap;
use crate::{Rendering, Stream, render_for_model};

/// A part of the stream that a reply covers, in order.
#[derive(Debug)]
pub(crate) enum Part {
    Bytes {
        start: u64,
        stream: Stream,
        bytes: Vec<u8>,
    },
    Missing(Range<u64>),
}

impl Part {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Bytes { bytes, .. } => bytes.is_empty(),
            Self::Missing(range) => range.is_empty(),
        }
    }
}

/// A wanted span, and whether the budget of the reply has room for it.
#[derive(Debug)]
pub(crate) enum Choice {
    Take(Span),
    Skip(Span),
}

/// Divides `spans` so that at most `max` bytes are taken: all if they fit, else the head and the tail of them.
pub(crate) fn choose(spans: Vec<Span>, max: usize) -> Vec<Choice> {
    let total: u64 = spans.iter().map(|span| span.range.end - span.range.start).sum();
    let max = max as u64;
    let (head, tail) = if total <= max {
        (total, total)
    } else {
        (max / 2, total - (max - max / 2))
    };
    let mut choices = Vec::with_capacity(spans.len() + 2);
    let mut seen = 0;
    for Span { range, stream } in spans {
        // The boundaries of head and tail, translated from "wanted bytes seen so far" to log offsets in this span.
        let at = |boundary: u64| (range.start + boundary.saturating_sub(seen)).min(range.end);
        let (head, tail) = (at(head), at(tail).max(at(head)));
        seen += range.end - range.start;
        let mut push = |range: Range<u64>, choice: fn(Span) -> Choice| {
            if !range.is_empty() {
                choices.push(choice(Span { range, stream }));
            }
        };
        push(range.start..head, Choice::Take);
        push(head..tail, Choice::Skip);
        push(tail..range.end, Choice::Take);
    }
    choices
}

/// What follows the last byte of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing, ever: what is unfinished is shown lossily.
    Final,
    /// More bytes of the log, to be read by another call that shows what is unfinished here.
    Continued,
    /// Nothing yet: what is unfinished at the very end is not taken.
    Live,
}

/// The rendered reply.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) text: String,
    /// Bytes at the end that were left for the next reply.
    pub(crate) held_back: u64,
    pub(crate) omitted: u64,
    /// Where the text after the last omission note begins.
    pub(crate) last_piece: usize,
}

/// A contiguous part of the reply.
#[derive(Debug)]
enum Block {
    Piece(Vec<Chunk>),
    Gap(Vec<Range<u64>>),
}

/// Bytes of one stream that lie together in the log.
#[derive(Debug)]
struct Chunk {
    start: u64,
    stream: Stream,
    bytes: Vec<u8>,
}

/// Renders `parts`. `file` names the spill file and how many bytes of the stream it holds.
pub(crate) fn assemble(
    parts: Vec<Part>,
    carry: Carry,
    end: End,
    rendering: Rendering,
    file: Option<(&Path, u64)>,
) -> View {
    let mut view = View {
        text: String::new(),
        held_back: 0,
        omitted: 0,
        last_piece: 0,
    };
    let mut carry = carry;
    let mut section = Stream::Stdout;
    let mut blocks = blocks(parts).into_iter().peekable();
    while let Some(block) = blocks.next() {
        match block {
            Block::Piece(chunks) => {
                let end = if blocks.peek().is_some() { End::Final } else { end };
                view.held_back = if end == End::Live {
                    held_back(&chunks, &carry)
                } else {
                    0
                };
                let piece = match rendering {
                    Rendering::Sections => sections(&chunks, std::mem::take(&mut carry), end, &mut section),
                    Rendering::Interleaved => interleaved(&chunks, std::mem::take(&mut carry), end),
                };
                view.text.push_str(&piece);
            }
            Block::Gap(ranges) => {
                carry = Carry::default();
                view.omitted += ranges.iter().map(|range| range.end - range.start).sum::<u64>();
                push_notes(&mut view.text, &ranges, file);
                view.last_piece = view.text.len();
            }
        }
    }
    view
}

/// Groups the parts. The edges of a gap move to character boundaries, so that a cut never makes U+FFFD.
fn blocks(parts: Vec<Part>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for part in parts {
        match part {
            Part::Missing(range) => {
                if let Some(cut) = cut_end(&mut blocks) {
                    push_gap(&mut blocks, cut);
                }
                push_gap(&mut blocks, range);
            }
            Part::Bytes {
                start,
                stream,
                mut bytes,
            } => {
                let mut cut = 0;
                if let Some(Block::Gap(_)) = blocks.last() {
                    cut = bytes
                        .iter()
                        .take(3)
                        .take_while(|&&byte| byte & 0xc0 == 0x80)
                        .count();
                    bytes.drain(..cut);
                    push_gap(&mut blocks, start..start + cut as u64);
                }
                if bytes.is_empty() {
                    continue;
                }
                let chunk = Chunk {
                    start: start + cut as u64,
                    stream,
                    bytes,
                };
                match blocks.last_mut() {
                    Some(Block::Piece(chunks)) => chunks.push(chunk),
                    _ => blocks.push(Block::Piece(vec![chunk])),
                }
            }
        }
    }
    blocks
}

/// Takes an incomplete character off the end of the last piece and returns where it was.
fn cut_end(blocks: &mut Vec<Block>) -> Option<Range<u64>> {
    let Some(Block::Piece(chunks)) = blocks.last_mut() else {
        return None;
    };
    let last = chunks.last_mut()?;
    let kept = last.bytes.len() - unfinished_utf8(&last.bytes);
    let cut = last.start + kept as u64..last.start + last.bytes.len() as u64;
    last.bytes.truncate(kept);
    if kept == 0 {
        chunks.pop();
    }
    if chunks.is_empty() {
        blocks.pop();
    }
    Some(cut)
}

fn push_gap(blocks: &mut Vec<Block>, range: Range<u64>) {
    match blocks.last_mut() {
        _ if range.is_empty() => {}
        Some(Block::Gap(ranges)) => ranges.push(range),
        _ => blocks.push(Block::Gap(vec![range])),
    }
}

/// How much of the last chunk begins something unfinished. The part of it that lies in earlier chunks needs no
/// holding back: the next reply finds it in its [`Carry`].
fn held_back(chunks: &[Chunk], carry: &Carry) -> u64 {
    let Some(last) = chunks.last() else { return 0 };
    let stream = of_stream(chunks, last.stream, carry);
    unfinished(&stream).min(last.bytes.len()) as u64
}

fn of_stream(chunks: &[Chunk], stream: Stream, carry: &Carry) -> Vec<u8> {
    let mut bytes = match stream {
        Stream::Stdout => carry.stdout.clone(),
        Stream::Stderr => carry.stderr.clone(),
    };
    for chunk in chunks.iter().filter(|chunk| chunk.stream == stream) {
        bytes.extend_from_slice(&chunk.bytes);
    }
    bytes
}

/// `section` is the one that the text before this piece ended in, and then the one that this piece ends in. What goes on
/// in the section of standard output has no heading, except after another section.
fn sections(chunks: &[Chunk], carry: Carry, end: End, section: &mut Stream) -> String {
    let render = |stream| {
        let bytes = of_stream(chunks, stream, &carry);
        let shown = if end == End::Final {
            bytes.len()
        } else {
            bytes.len() - unfinished(&bytes)
        };
        render_for_model(&bytes[..shown])
    };
    let (stdout, stderr) = (render(Stream::Stdout), render(Stream::Stderr));
    let mut text = String::new();
    if !stdout.is_empty() {
        if *section == Stream::Stderr {
            text.push_str("[stdout]\n");
        }
        *section = Stream::Stdout;
        text.push_str(&stdout);
    }
    if !stderr.is_empty() {
        end_line(&mut text);
        text.push_str("[stderr]\n");
        text.push_str(&stderr);
        *section = Stream::Stderr;
    }
    text
}

/// The streams in the order of arrival; a character that another stream's bytes cut in two stays whole.
fn interleaved(chunks: &[Chunk], mut carry: Carry, end: End) -> String {
    let mut shown = Vec::new();
    for chunk in chunks {
        let rest = carry.of(chunk.stream);
        rest.extend_from_slice(&chunk.bytes);
        let ready = rest.len() - unfinished(rest);
        shown.extend(rest.drain(..ready));
    }
    if end == End::Final {
        shown.append(&mut carry.stdout);
        shown.append(&mut carry.stderr);
    }
    render_for_model(&shown)
}

fn push_notes(text: &mut String, gap: &[Range<u64>], file: Option<(&Path, u64)>) {
    let in_file = file.map_or(0, |(_, bytes)| bytes);
    let kept = clip(gap, &(0..in_file));
    let lost = clip(gap, &(in_file..u64::MAX));
    end_line(text);
    if let (Some((path, _)), Some((bytes, span))) = (file, kept) {
        let path = path.display();
        let _ = writeln!(
            text,
            "[{bytes} bytes omitted here; full output: {path} bytes {}-{}]",
            span.start,
            span.end - 1
        );
    }
    if let Some((bytes, _)) = lost {
        let _ = writeln!(text, "[{bytes} bytes omitted here; no longer available]");
    }
}

/// How many bytes of `ranges` lie within `bounds`, and from where to where.
fn clip(ranges: &[Range<u64>], bounds: &Range<u64>) -> Option<(u64, Range<u64>)> {
    let mut clipped = ranges
        .iter()
        .map(|range| overlap(range, bounds))
        .filter(|range| !range.is_empty());
    let first = clipped.next()?;
    let zero = (first.end - first.start, first);
    Some(clipped.fold(zero, |(bytes, span), next| {
        (bytes + next.end - next.start, span.start..next.end)
    }))
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}
