//! What goes to stdout and stderr, written by a thread of its own.
//!
//! That thread is the only one that writes to the terminal, so nothing is written over a question that is open there.
//!
//! What others wrote (a model, a provider, a command) is shown on a terminal, never obeyed there; elsewhere every byte is
//! what it was.
//!
//! Whoever reads may be slow or stuck. Nothing here waits for that but [`Printer::finish`], so signals are acted upon
//! meanwhile.

use std::fs::File;
use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use dsh_output::visible_line;
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::streams;

/// The terminal of this process, wherever its standard streams go.
pub(super) const TERMINAL: &str = "/dev/tty";

/// Erases the line that the cursor is in.
const ERASE: &str = "\r\x1b[K";

/// The way to stdout and stderr.
#[derive(Debug)]
pub(super) struct Printer {
    pieces: mpsc::Sender<Piece>,
    status: StatusLine,
    ended: CancellationToken,
    broken: Arc<Broken>,
}

/// Whether there is a line that says what the agent does: where stderr is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatusLine {
    Shown,
    Absent,
}

/// What a person is to be asked.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) text: String,
    /// Told once it is written.
    pub(super) asked: oneshot::Sender<io::Result<Asked>>,
}

/// A question that was written.
#[derive(Debug)]
pub(super) struct Asked {
    /// Where the answer comes from.
    pub(super) terminal: File,
    /// Until the answer is there.
    pub(super) open: Open,
}

/// Keeps the terminal for a question until it is dropped.
#[derive(Debug)]
pub(super) struct Open(mpsc::Sender<Piece>);

/// Set when stdout takes nothing more.
#[derive(Debug, Default)]
struct Broken {
    token: CancellationToken,
    error: Mutex<Option<io::Error>>,
}

#[derive(Debug)]
enum Piece {
    /// A line for stdout.
    Line(String),
    /// A line for stderr.
    Note(String),
    /// What the status line says from now on.
    Status(String),
    /// To be asked on the terminal.
    Ask(Question),
    /// It was answered, or nobody wants to know any more.
    Closed,
    /// Nothing follows.
    End,
}

impl Printer {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (pieces, received) = mpsc::channel();
        let status = match stderr().is_terminal() {
            true => StatusLine::Shown,
            false => StatusLine::Absent,
        };
        let terminal = Terminal::new(status, pieces.clone());
        let printer = Self {
            pieces,
            status,
            ended: CancellationToken::new(),
            broken: Arc::default(),
        };
        let (ended, broken) = (printer.ended.clone().drop_guard(), Arc::clone(&printer.broken));
        std::thread::Builder::new()
            .name("printer".to_owned())
            .spawn(move || {
                let _ended = ended;
                terminal.print(received, &broken);
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

    /// What the status line says from now on, if there is one.
    pub(super) fn status(&self, status: String) {
        match self.status {
            StatusLine::Shown => self.put(Piece::Status(status)),
            StatusLine::Absent => {}
        }
    }

    /// A question for the person at the terminal. Until it is answered the terminal shows nothing else, and no other
    /// question.
    pub(super) fn ask(&self, question: Question) {
        self.put(Piece::Ask(question));
    }

    /// Waits until stdout takes nothing more.
    pub(super) async fn broken(&self) {
        self.broken.token.cancelled().await;
    }

    /// Waits until everything is written; the error of stdout, if there was one.
    pub(super) async fn finish(self) -> io::Result<()> {
        self.put(Piece::End);
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
        // The thread lives until it is told that nothing follows.
        let _ = self.pieces.send(piece);
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        self.put(Piece::End);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Once the thread has ended there is nothing to keep.
        let _ = self.0.send(Piece::Closed);
    }
}

/// Both streams, which may be the same terminal.
struct Terminal {
    status_line: StatusLine,
    status: String,
    /// Whether the line that the cursor is in is ours to erase.
    drawn: bool,
    /// Whether a question is open.
    asking: bool,
    /// What would be written over it.
    held: Vec<Piece>,
    /// Where it is told that a question is closed.
    pieces: mpsc::Sender<Piece>,
}

impl Terminal {
    fn new(status_line: StatusLine, pieces: mpsc::Sender<Piece>) -> Self {
        Self {
            status_line,
            status: String::new(),
            drawn: false,
            asking: false,
            held: Vec::new(),
            pieces,
        }
    }

    fn print(mut self, pieces: mpsc::Receiver<Piece>, broken: &Broken) {
        for piece in pieces {
            match piece {
                Piece::End => break,
                piece if self.asking && self.disturbs(&piece) => self.held.push(piece),
                piece => self.show(piece, broken),
            }
        }
        self.close(broken);
        self.erase();
    }

    /// Whether it would be written over the question, or is another one.
    fn disturbs(&self, piece: &Piece) -> bool {
        match piece {
            Piece::Line(_) => stdout().is_terminal(),
            Piece::Note(_) => self.status_line == StatusLine::Shown,
            Piece::Ask(_) => true,
            Piece::Status(_) | Piece::Closed | Piece::End => false,
        }
    }

    fn show(&mut self, piece: Piece, broken: &Broken) {
        match piece {
            // Nobody wants to know any more.
            Piece::Ask(question) if question.asked.is_closed() => {}
            Piece::Ask(question) => self.ask(question),
            Piece::Closed => self.close(broken),
            Piece::Status(status) => {
                self.erase();
                self.status = visible_line(&status).into_owned();
                self.draw();
            }
            Piece::Note(note) => {
                self.erase();
                // There is no third place to complain to.
                let note = streams::shown(&stderr(), &note);
                let _ = writeln!(stderr(), "{note}");
                self.draw();
            }
            Piece::Line(line) if !broken.token.is_cancelled() => {
                self.erase();
                if let Err(error) = say(&line) {
                    *broken.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    broken.token.cancel();
                }
                self.draw();
            }
            Piece::Line(_) | Piece::End => {}
        }
    }

    fn ask(&mut self, question: Question) {
        self.erase();
        let asked = write_question(&question.text).map(|terminal| Asked {
            terminal,
            open: Open(self.pieces.clone()),
        });
        self.asking = asked.is_ok();
        // Where nobody takes it, the question is closed by being dropped.
        let _ = question.asked.send(asked);
        self.draw();
    }

    /// Shows what had to wait for the open question.
    fn close(&mut self, broken: &Broken) {
        // Without an answer the cursor is still behind the question.
        self.drawn |= self.asking && self.status_line == StatusLine::Shown;
        self.asking = false;
        let mut held = std::mem::take(&mut self.held).into_iter();
        while !self.asking
            && let Some(piece) = held.next()
        {
            self.show(piece, broken);
        }
        self.held = held.collect();
        self.erase();
        self.draw();
    }

    fn erase(&mut self) {
        if self.drawn {
            let _ = write!(stderr(), "{ERASE}");
            self.drawn = false;
        }
    }

    /// Writes the status line without letting the terminal break it.
    fn draw(&mut self) {
        if !self.status.is_empty() && !self.asking {
            let _ = write!(stderr(), "\x1b[?7l{}\x1b[?7h", self.status);
            self.drawn = true;
        }
    }
}

fn write_question(text: &str) -> io::Result<File> {
    let mut terminal = File::options().read(true).write(true).open(TERMINAL)?;
    // What was typed until now answers something else: nobody has read the question.
    tcflush(&terminal, QueueSelector::IFlush)?;
    terminal.write_all(text.as_bytes())?;
    Ok(terminal)
}

fn say(line: &str) -> io::Result<()> {
    let mut stdout = stdout().lock();
    let line = streams::shown(&stdout, line);
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
