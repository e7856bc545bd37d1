//! What a product writes for people.

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of it is looked at at once.
const CHUNK: usize = 8 * 1024;

/// Reads a product's standard error to its end: each chunk is shown to `look`, and each line is in the program's log, at level
/// debug, under the product's name. It may hold what models and people must not see; nothing else has it.
///
/// # Cancel safety
///
/// Dropped, what was not read yet is not looked at.
pub async fn log_lines<R: AsyncRead + Unpin>(name: &str, mut stderr: R, mut look: impl FnMut(&[u8])) {
    let mut chunk = vec![0; CHUNK];
    let mut line: Vec<u8> = Vec::new();
    // A pipe that cannot be read has no more to say.
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        look(&chunk[..read]);
        for byte in &chunk[..read] {
            if *byte != b'\n' {
                line.push(*byte);
            }
            if *byte == b'\n' || line.len() == CHUNK {
                tracing::debug!(product = name, "{}", String::from_utf8_lossy(&line));
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        tracing::debug!(product = name, "{}", String::from_utf8_lossy(&line));
    }
}
