//! What comes in before the SDK sees it, for the fuzz targets: not part of the interface.

use serde_json::Value;
use tokio::io::AsyncRead;

use crate::line::{Line, LineReader};
use crate::message::{self, Incoming};

/// The lines of a stream, each of at most `limit` bytes; of a longer one the id it was sent under.
pub async fn lines(input: impl AsyncRead + Unpin, limit: usize) -> Vec<Result<Vec<u8>, Option<Value>>> {
    let mut reader = LineReader::new(input, limit);
    let mut lines = Vec::new();
    loop {
        match reader.next().await {
            Line::Complete(line) => lines.push(Ok(line)),
            Line::TooLong(id) => lines.push(Err(id.map(|id| id.into_json_value()))),
            Line::End => return lines,
        }
    }
}

/// What a line comes to, and the answers that refuse it.
pub fn message(line: &[u8]) -> (&'static str, Vec<Value>) {
    match message::read(line) {
        Incoming::Request(request) => match request.under(1) {
            Ok(_) => ("request", Vec::new()),
            Err(answer) => ("unreadable", vec![answer]),
        },
        Incoming::Cancel(_) => ("cancel", Vec::new()),
        Incoming::Nothing => ("nothing", Vec::new()),
        Incoming::Refused(answers) => ("refused", answers),
    }
}
