//! How a reply gets its bytes: a snapshot under the lock, then the file without it.

use std::fs::File;
use std::ops::Range;

use crate::carry::{self, Carry};
use crate::log::Core;
use crate::render::MAX_UNFINISHED;
use crate::runs::Span;
use crate::spill;
use crate::view::{self, Choice, End, Part, View};
use crate::{OutputLog, Rendering, Stream};

/// What a reader asks for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) range: Range<u64>,
    /// Only this stream.
    pub(crate) only: Option<Stream>,
    /// Source bytes taken at most.
    pub(crate) max: usize,
    pub(crate) rendering: Rendering,
}

/// Bytes a reply is made of, as far as memory has them.
#[derive(Debug)]
enum Wanted {
    InMemory(Part),
    InFile(Span),
}

#[derive(Debug)]
struct Snapshot {
    /// What lies just before the reply, to find a character or escape sequence that begins there.
    context: Vec<Wanted>,
    wanted: Vec<Wanted>,
    range: Range<u64>,
    end: End,
    /// Where the last byte that the budget had no room for ends; 0 if there was room for all.
    skipped_until: u64,
}

/// Renders what `request` asks for; also returns the end of the range, as far as the log goes.
pub(crate) fn reply(log: &OutputLog, request: &Request) -> (View, u64) {
    let [reply] = replies(log, [request]);
    reply
}

/// The same for several requests that are to speak of one moment: which stream a byte belongs to may be told otherwise a
/// moment later, when there were very many switches between the two.
pub(crate) fn replies<const N: usize>(log: &OutputLog, requests: [&Request; N]) -> [(View, u64); N] {
    let snapshots = {
        let core = log.core();
        requests.map(|request| (request.rendering, snapshot(&core, request)))
    };
    snapshots.map(|(rendering, snapshot)| finish(log, snapshot, rendering))
}

/// Fetches what is not in memory, and renders.
fn finish(log: &OutputLog, snapshot: Snapshot, rendering: Rendering) -> (View, u64) {
    if snapshot.skipped_until > 0 {
        log.keep_for_later(snapshot.skipped_until);
    }
    let (file, spilled) = {
        let core = log.core();
        (core.file.clone(), core.spilled)
    };
    // A file that somebody else removed is not worth naming.
    let opened = file.as_ref().and_then(|file| file.open().ok());
    let named = file
        .as_deref()
        .filter(|_| opened.is_some())
        .map(|file| (file.path(), spilled));
    let context = read_all(snapshot.context, opened.as_ref(), spilled);
    let mut parts = read_all(snapshot.wanted, opened.as_ref(), spilled);
    parts.splice(0..0, carry::lost(&context, &parts));
    let carry = Carry::between(&context, &parts);
    let view = view::assemble(parts, carry, snapshot.end, rendering, named);
    (view, snapshot.range.end)
}

fn snapshot(core: &Core, request: &Request) -> Snapshot {
    let len = core.window.len();
    let start = request.range.start.min(len);
    let range = start..request.range.end.clamp(start, len);
    let is_wanted = |span: &Span| request.only.is_none_or(|only| only == span.stream);
    let spans = core.runs.within(range.clone()).filter(is_wanted).collect();
    let mut snapshot = Snapshot {
        context: Vec::new(),
        wanted: Vec::new(),
        end: match (range.end == len, core.closed) {
            (false, _) => End::Continued,
            (true, false) => End::Live,
            (true, true) => End::Final,
        },
        range,
        skipped_until: 0,
    };
    for choice in view::choose(spans, request.max) {
        match choice {
            Choice::Take(span) => take(core, span, &mut snapshot.wanted),
            Choice::Skip(span) => {
                snapshot.skipped_until = span.range.end;
                snapshot.wanted.push(Wanted::InMemory(Part::Missing(span.range)));
            }
        }
    }
    let context = start.saturating_sub(MAX_UNFINISHED as u64)..start;
    for span in core.runs.within(context).filter(is_wanted) {
        take(core, span, &mut snapshot.context);
    }
    snapshot
}

fn take(core: &Core, span: Span, wanted: &mut Vec<Wanted>) {
    let stream = span.stream;
    let mut at = span.range.start;
    for (start, bytes) in core.window.read(&span.range) {
        if at < start {
            wanted.push(Wanted::InFile(Span {
                range: at..start,
                stream,
            }));
        }
        at = start + bytes.len() as u64;
        wanted.push(Wanted::InMemory(Part::Bytes { start, stream, bytes }));
    }
    if at < span.range.end {
        wanted.push(Wanted::InFile(Span {
            range: at..span.range.end,
            stream,
        }));
    }
}

/// Fetches what is not in memory. What the file does not have either is missing.
fn read_all(wanted: Vec<Wanted>, file: Option<&File>, spilled: u64) -> Vec<Part> {
    let mut parts = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        match wanted {
            Wanted::InMemory(part) => push(&mut parts, part),
            Wanted::InFile(Span { range, stream }) => {
                let there = range.start..range.end.min(spilled).max(range.start);
                match file.and_then(|file| spill::read_exact(file, &there)) {
                    Some(bytes) => {
                        let start = there.start;
                        push(&mut parts, Part::Bytes { start, stream, bytes });
                        push(&mut parts, Part::Missing(there.end..range.end));
                    }
                    None => push(&mut parts, Part::Missing(range)),
                }
            }
        }
    }
    parts
}

/// Appends a part that is not empty. Bytes that go on with a stream are joined to those before: a character is whole
/// wherever its bytes came from.
fn push(parts: &mut Vec<Part>, part: Part) {
    if part.is_empty() {
        return;
    }
    if let (
        Some(Part::Bytes { start, stream, bytes }),
        Part::Bytes {
            start: next,
            stream: of,
            bytes: more,
        },
    ) = (parts.last_mut(), &part)
        && (*stream, *start + bytes.len() as u64) == (*of, *next)
    {
        bytes.extend_from_slice(more);
    } else {
        parts.push(part);
    }
}
