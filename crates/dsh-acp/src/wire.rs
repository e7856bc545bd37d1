//! The wire: lines of the editor come in, lines for it go out, and nothing but protocol.

use std::io;
use std::time::Duration;

use agent_client_protocol::{Error, RawJsonRpcMessage, TransportFrame};
use dsh_agent_core::Served;
use futures_util::{Stream, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::codec::FramedRead;

use crate::ending::Ending;
use crate::line::{Line, LineDecoder, MAX_LINE};
use crate::outbox::Places;

/// How long one write may go on after the connection is over: an editor that closed its end may still read, one that is
/// gone must not hold the end up.
const LINGER: Duration = Duration::from_millis(500);

/// Reads until the input or the connection ends, and hands in what the SDK has to see.
pub(crate) async fn read(
    input: impl AsyncRead + Unpin,
    places: &Places,
    ending: &Ending,
    hand_in: impl Fn(TransportFrame) -> bool,
) {
    let mut lines = FramedRead::new(input, LineDecoder::new(MAX_LINE));
    let reading = async {
        while let Some(line) = lines.next().await {
            let line = match line {
                Ok(line) => line,
                Err(error) => {
                    tracing::warn!("acp: reading failed, which ends the connection: {error}");
                    return;
                }
            };
            let Some(frame) = frame_of(line) else { continue };
            if is_answered(&frame) {
                places.for_request().await;
            }
            if !hand_in(frame) {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        () = ending.token().cancelled() => {}
        () = reading => ending.end(Served::InputEnded),
    }
}

/// Writes what the SDK has, one line after the other, until it has no more.
pub(crate) async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut frames: impl Stream<Item = TransportFrame> + Unpin,
    places: Places,
    ending: Ending,
) {
    let mut broken = false;
    while let Some(frame) = frames.next().await {
        // Half a line may be out: nothing can follow it, but places are given back.
        if !broken && let Err(error) = put(&mut output, &frame, &ending).await {
            tracing::info!("acp: the editor no longer reads: {error}");
            broken = true;
            ending.end(Served::OutputFailed);
        }
        match frame {
            TransportFrame::Single(RawJsonRpcMessage::Response(_)) => places.answered(),
            TransportFrame::Single(RawJsonRpcMessage::Notification(told))
                if &*told.method == "session/update" =>
            {
                places.updated();
            }
            _ => {}
        }
    }
}

async fn put(
    output: &mut (impl AsyncWrite + Unpin),
    frame: &TransportFrame,
    ending: &Ending,
) -> io::Result<()> {
    let mut line = frame.to_json().map_err(io::Error::other)?;
    line.push('\n');
    let write = async {
        output.write_all(line.as_bytes()).await?;
        output.flush().await
    };
    let too_late = async {
        ending.token().cancelled().await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        biased;
        written = write => written,
        () = too_late => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// What the SDK has to see of a line, if anything.
fn frame_of(line: Line) -> Option<TransportFrame> {
    let line = match line {
        Line::Complete(line) => line,
        Line::TooLong => return Some(refused(format!("a message may have at most {MAX_LINE} bytes"))),
        Line::NotText => return Some(refused("the line is no UTF-8".to_owned())),
    };
    let text = line.strip_prefix('\u{feff}').unwrap_or(&line).trim();
    if text.is_empty() {
        return None;
    }
    match TransportFrame::parse_json(text) {
        // A broken answer to a question of ours has no answer itself.
        TransportFrame::Malformed { raw, .. } if is_answer(&raw) => None,
        // The SDK would send the whole line back.
        TransportFrame::Malformed { error, .. } => {
            Some(malformed(Error::new(error.code.value(), error.message)))
        }
        frame => Some(frame),
    }
}

fn is_answer(raw: &str) -> bool {
    let value: Value = serde_json::from_str(raw).unwrap_or_default();
    value.get("method").is_none() && (value.get("result").is_some() || value.get("error").is_some())
}

/// Whether the SDK answers it.
fn is_answered(frame: &TransportFrame) -> bool {
    match frame {
        TransportFrame::Single(RawJsonRpcMessage::Request(_)) => true,
        TransportFrame::Single(RawJsonRpcMessage::Notification(_) | RawJsonRpcMessage::Response(_)) => false,
        _ => true,
    }
}

fn refused(reason: String) -> TransportFrame {
    malformed(Error::invalid_request().data(Value::String(reason)))
}

fn malformed(error: Error) -> TransportFrame {
    TransportFrame::Malformed {
        raw: String::new(),
        error,
    }
}
