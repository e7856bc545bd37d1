//! The body of an answer: bytes in whatever pieces they come, chunks out.

use std::collections::VecDeque;

use dsh_llm::{Chunk, ModelError};
use hyper::body::Bytes;

use crate::answer::{Answer, Progress};
use crate::failure::Reporter;
use crate::sse::{Decoder, MAX_EVENT, TooLong};

/// What was read of an answer so far.
pub(crate) struct Body {
    decoder: Decoder,
    answer: Answer,
    reporter: Reporter,
}

impl Body {
    /// Nothing yet. `turn` tells this answer from others of the conversation.
    pub(crate) fn new(reporter: Reporter, turn: usize) -> Self {
        Self {
            decoder: Decoder::default(),
            answer: Answer::new(reporter.clone(), turn),
            reporter,
        }
    }

    /// Adds bytes. To be called when [`event`](Self::event) has nothing more to give.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.decoder.push(bytes);
    }

    /// Reads one event, and adds what it says to `out`; `None` when more bytes are needed.
    pub(crate) fn event(&mut self, out: &mut VecDeque<Chunk>) -> Result<Option<Progress>, ModelError> {
        match self.decoder.next() {
            Ok(Some(data)) => self.answer.event(&data, out).map(Some),
            Ok(None) => Ok(None),
            Err(TooLong) => {
                let what =
                    format_args!("the answer cannot be read: an event is longer than {MAX_EVENT} bytes");
                Err(self.reporter.passing("MALFORMED_RESPONSE", what))
            }
        }
    }

    /// Whether the provider said why the answer is over. What is cut after that misses nothing.
    pub(crate) fn is_finished(&self) -> bool {
        self.answer.is_finished()
    }

    /// Adds what the end of the body tells to `out`.
    pub(crate) fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), ModelError> {
        self.answer.end(out)
    }
}

/// Reads an answer that somebody has kept: the body as it came, in any pieces.
///
/// Gives what the stream of a provider would have given, and then the failure it would have ended with, if any. Where the
/// pieces end makes no difference.
///
/// ```
/// use dsh_llm::{Chunk, FinishReason};
///
/// let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// let (chunks, end) = dsh_llm_openai::read_kept(body.chunks(7));
/// assert_eq!(chunks[0], Chunk::TextDelta { index: 0, text: "hello".into() });
/// assert_eq!(chunks[1], Chunk::Finish(FinishReason::Stop));
/// assert_eq!(end, Ok(()));
/// ```
pub fn read_kept<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Chunk>, Result<(), ModelError>) {
    let mut body = Body::new(Reporter::new("a kept answer".to_owned(), None), 0);
    let mut chunks = VecDeque::new();
    let end = read_pieces(&mut body, pieces, &mut chunks);
    (chunks.into(), end)
}

fn read_pieces<'a>(
    body: &mut Body,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    out: &mut VecDeque<Chunk>,
) -> Result<(), ModelError> {
    for piece in pieces {
        body.push(Bytes::copy_from_slice(piece));
        while let Some(progress) = body.event(out)? {
            match progress {
                Progress::More => {}
                Progress::Done => return body.end(out),
            }
        }
    }
    body.end(out)
}
