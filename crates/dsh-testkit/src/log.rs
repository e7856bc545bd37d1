//! What was logged.

use std::{
    io,
    sync::{Mutex, MutexGuard, Once, PoisonError},
};

use tracing_subscriber::{filter::LevelFilter, fmt::MakeWriter};

/// Everything that was logged in this process since the first capture, one formatted event after the other.
static EVENTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Shows what was logged since it was made, by whatever thread.
///
/// It reads one subscriber for the whole process, which the first capture installs and which stays. Where every test has
/// a process of its own (nextest) a capture sees that test only. Where tests share a process as threads it sees its
/// neighbours, too: look for words that only this test can have caused.
#[derive(Debug)]
pub struct LogCapture {
    from: usize,
}

/// Writes each event, which comes in one piece, as one string.
struct Writer;

impl LogCapture {
    /// Begins to look.
    ///
    /// # Panics
    ///
    /// When the process has another subscriber already: nothing would be captured.
    pub fn start() -> Self {
        static INSTALL: Once = Once::new();
        INSTALL.call_once(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(LevelFilter::DEBUG)
                .with_ansi(false)
                .with_writer(Writer)
                .finish();
            let installed = tracing::subscriber::set_global_default(subscriber);
            assert!(
                installed.is_ok(),
                "this process has a tracing subscriber that captures nothing"
            );
        });
        Self { from: events().len() }
    }

    /// The events so far, one string each, with level, text and fields.
    pub fn lines(&self) -> Vec<String> {
        events()[self.from..].to_vec()
    }

    /// Whether an event so far contains `text`.
    pub fn contains(&self, text: &str) -> bool {
        events()[self.from..].iter().any(|event| event.contains(text))
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        events().push(String::from_utf8_lossy(bytes).trim_end().to_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Writer {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}

fn events() -> MutexGuard<'static, Vec<String>> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner)
}
