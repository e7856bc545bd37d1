//! The wire: a line for each message, in both directions.

use agent_client_protocol::{RawJsonRpcMessage, TransportFrame};
use dsh_subagent_process::{LineError, Lines};
use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;

/// How many requests of the agent may wait for their answers to be written. One that has more and reads none is read no
/// further.
pub(crate) const REQUESTS: usize = 64;

/// Reads to the end, and hands in every message. What is none is passed over.
///
/// # Errors
///
/// What ended the reading before the end.
pub(crate) async fn read(
    output: impl AsyncRead + Unpin,
    places: &Semaphore,
    hand_in: impl Fn(TransportFrame),
) -> Result<(), LineError> {
    let mut lines = Lines::new(output);
    while let Some(line) = lines.next().await? {
        let TransportFrame::Single(message) = TransportFrame::parse_json(&line) else {
            tracing::debug!("subagent-acp: a line that is no message: {line}");
            continue;
        };
        if matches!(message, RawJsonRpcMessage::Request(_))
            && let Ok(place) = places.acquire().await
        {
            place.forget();
        }
        hand_in(TransportFrame::Single(message));
    }
    Ok(())
}

/// Writes until there is nothing more to say, or a request cannot be written; then the agent's input ends.
pub(crate) async fn write(
    mut input: impl AsyncWrite + Unpin,
    places: &Semaphore,
    mut frames: impl Stream<Item = TransportFrame> + Unpin,
) {
    while let Some(frame) = frames.next().await {
        let Ok(mut line) = frame.to_json() else { continue };
        line.push('\n');
        let written = input.write_all(line.as_bytes()).await;
        match frame {
            TransportFrame::Single(RawJsonRpcMessage::Response(_)) => places.add_permits(1),
            // Nobody will answer it.
            TransportFrame::Single(RawJsonRpcMessage::Request(_)) if written.is_err() => break,
            _ => {}
        }
    }
    // No answer will make a place.
    places.close();
}
