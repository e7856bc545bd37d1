//! What the reply before this one left for it.

use crate::Stream;
use crate::render::{unfinished, unfinished_utf8};
use crate::view::Part;

/// Bytes of each stream that an earlier reply left unfinished.
#[derive(Debug, Default)]
pub(crate) struct Carry {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Carry {
    /// What the bytes before a reply leave unfinished, as far as `reply` goes on with it.
    ///
    /// The beginning of a character that the next byte of its stream does not continue is left out: the reply before
    /// saw that byte, too, held it back and showed the broken character.
    pub(crate) fn between(context: &[Part], reply: &[Part]) -> Self {
        let mut carry = Self::default();
        for part in context {
            match part {
                Part::Bytes { stream, bytes, .. } => carry.of(*stream).extend_from_slice(bytes),
                Part::Missing(_) => carry = Self::default(),
            }
        }
        for stream in [Stream::Stdout, Stream::Stderr] {
            let bytes = carry.of(stream);
            let keep = unfinished(bytes);
            bytes.drain(..bytes.len() - keep);
            if next_byte(reply, stream).is_some_and(|next| breaks(bytes, next)) {
                bytes.clear();
            }
        }
        carry
    }

    pub(crate) fn of(&mut self, stream: Stream) -> &mut Vec<u8> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

/// The beginnings of characters that lie before a reply and go on, if at all, in the gap that it begins with: they are
/// missing with the rest. The reply before did not show them, unless it saw, too, how they are broken.
pub(crate) fn lost(context: &[Part], reply: &[Part]) -> Vec<Part> {
    let Some(Part::Missing(_)) = reply.first() else {
        return Vec::new();
    };
    let gap = context.iter().rposition(|part| matches!(part, Part::Missing(_)));
    let known = &context[gap.map_or(0, |gap| gap + 1)..];
    let mut offsets = Vec::new();
    for of in [Stream::Stdout, Stream::Stderr] {
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        for part in known {
            if let Part::Bytes {
                start,
                stream,
                bytes: more,
            } = part
                && *stream == of
            {
                bytes.extend_from_slice(more);
                places.extend(*start..*start + more.len() as u64);
            }
        }
        offsets.extend(places.split_off(bytes.len() - unfinished_utf8(&bytes)));
    }
    offsets.sort_unstable();
    offsets.into_iter().map(|at| Part::Missing(at..at + 1)).collect()
}

fn next_byte(parts: &[Part], of: Stream) -> Option<u8> {
    parts.iter().find_map(|part| match part {
        Part::Bytes { stream, bytes, .. } if *stream == of => bytes.first().copied(),
        _ => None,
    })
}

/// Whether `next` shows that the incomplete character `begun` will never be complete.
fn breaks(begun: &[u8], next: u8) -> bool {
    let together = [begun, &[next]].concat();
    std::str::from_utf8(&together).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_some())
}
