//! What goes to stdout and stderr, written by a thread of its own.
//!
//! Whoever reads may be slow or stuck. Nothing here waits for that but [`Printer::finish`], so signals are acted upon
//! meanwhile.

use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio_util::sync::CancellationToken;

/// Erases the line that the cursor is in.
const ERASE: &str = "\r\x1b[K";

/// The way to stdout and stderr.
#[derive(Debug)]
pub(super) struct Printer {
    pieces: mpsc::Sender<Piece>,
    ended: CancellationToken,
    broken: Arc<Broken>,
}

/// Set when stdout takes nothing more.
#[derive(Debug, Default)]
struct Broken {
    token: CancellationToken,
    error: Mutex<Option<io::Error>>,
}

enum Piece {
    /// A line for stdout.
    Line(String),
    /// A line for stderr.
    Note(String),
    /// What the status line says from now on.
    Status(String),
}

impl Printer {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (pieces, received) = mpsc::channel();
        let printer = Self {
            pieces,
            ended: CancellationToken::new(),
            broken: Arc::default(),
        };
        let (ended, broken) = (printer.ended.clone().drop_guard(), Arc::clone(&printer.broken));
        std::thread::Builder::new()
            .name("printer".to_owned())
            .spawn(move || {
                let _ended = ended;
                Terminal::new().print(received, &broken);
            })?;
        Ok(printer)
    }

    /// A line for stdout.
    pub(super) fn line(&self, line: String) {
        self.put(Piece::Line(line));
    }

    /// A line for stderr.
    pub(super) fn note(&self, note: String) {
        self.put(Piece::Note(note));
    }

    /// What the status line says from now on; it is there only where stderr is a terminal.
    pub(super) fn status(&self, status: String) {
        self.put(Piece::Status(status));
    }

    /// Waits until stdout takes nothing more.
    pub(super) async fn broken(&self) {
        self.broken.token.cancelled().await;
    }

    /// Waits until everything is written; the error of stdout, if there was one.
    pub(super) async fn finish(self) -> io::Result<()> {
        drop(self.pieces);
        self.ended.cancelled().await;
        let error = self
            .broken
            .error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        error.map_or(Ok(()), Err)
    }

    fn put(&self, piece: Piece) {
        // The thread lives as long as this has the other end.
        let _ = self.pieces.send(piece);
    }
}

/// Both streams, which may be the same terminal.
struct Terminal {
    has_status: bool,
    status: String,
}

impl Terminal {
    fn new() -> Self {
        Self {
            has_status: stderr().is_terminal(),
            status: String::new(),
        }
    }

    fn print(mut self, pieces: mpsc::Receiver<Piece>, broken: &Broken) {
        for piece in pieces {
            match piece {
                Piece::Status(status) if self.has_status => {
                    self.erase();
                    self.status = status;
                    self.draw();
                }
                Piece::Status(_) => {}
                Piece::Note(note) => {
                    self.erase();
                    // There is no third place to complain to.
                    let _ = writeln!(stderr(), "{note}");
                    self.draw();
                }
                Piece::Line(_) if broken.token.is_cancelled() => {}
                Piece::Line(line) => {
                    self.erase();
                    if let Err(error) = say(&line) {
                        *broken.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        broken.token.cancel();
                    }
                    self.draw();
                }
            }
        }
        self.erase();
    }

    fn erase(&self) {
        if !self.status.is_empty() {
            let _ = write!(stderr(), "{ERASE}");
        }
    }

    /// Writes the status line without letting the terminal break it.
    fn draw(&self) {
        if !self.status.is_empty() {
            let _ = write!(stderr(), "\x1b[?7l{}\x1b[?7h", self.status);
        }
    }
}

fn say(line: &str) -> io::Result<()> {
    let mut stdout = stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
