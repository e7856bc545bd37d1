//! The bounded output log of one process: cursors, spill, incremental UTF-8, text for the model.
//!
//! A process writes raw bytes to two pipes; an [`OutputLog`] keeps them in the order of arrival under absolute byte
//! offsets. Whoever drains the pipes appends; any number of readers read any range, any number of times.
//!
//! ```
//! use dsh_output::{OutputConfig, OutputLog, OutputSource, Rendering, Stream};
//!
//! let log = OutputLog::new(OutputConfig::default());
//! log.append(Stream::Stdout, b"building\n 10%\r100%\n");
//! log.append(Stream::Stderr, b"\x1b[33mwarning\x1b[0m: unused\n");
//! log.close();
//!
//! let reader = log.reader(Rendering::Sections);
//! let read = reader.read_from(0, 16_000);
//! assert_eq!(read.text, "building\n100%\n[stderr]\nwarning: unused\n");
//! assert_eq!((read.next, read.omitted), (log.len(), 0));
//! assert_eq!(reader.tail(1, 400), "warning: unused");
//! ```
//!
//! # What is kept
//! Memory keeps the head and the tail of the stream within a budget, byte-exact. When the stream outgrows the budget
//! (or a reader skips bytes) a private file is started that holds the stream from byte 0 up to its own cap; byte N of
//! the file is byte N of the log. All files of a [`SpillDir`] share a cap of their own; where it is reached, a file ends like
//! at its own. A disk error ends spilling, never the capture. Which stream a byte came from is kept
//! in at most 64 KiB: after thousands of changes between the streams, short runs far from both ends of the log may be
//! attributed to the other stream, never moved or lost.
//!
//! # What is missing
//! Every reply says exactly where bytes are missing and how many, on a line of its own:
//! - `[N bytes omitted here; full output: <path> bytes A-B]`: bytes A to B of that file, both included, counted from
//!   0. When one stream is read alone, the N bytes of it lie between A and B.
//! - `[N bytes omitted here; no longer available]`: not in the file.
//!
//! # Characters, escape sequences, lines
//! The log keeps raw bytes; [`render_for_model`] says how they are shown. A character or escape sequence that the end
//! of a reply cuts in two is shown by the reply that has its last byte. At the live end the reader leaves it for
//! the next call, unless bytes of the other stream have come after it, so that it never hides them. Text without a
//! newline (a prompt, a progress frame) is shown at once.

mod config;
mod log;
mod runs;
mod window;

mod room;
mod spill;
mod spill_dir;

mod carry;
mod render;
mod reply;
mod source;
mod view;
mod visible;

pub use config::{OutputConfig, SpillConfig};
pub use log::{OutputLog, Stream};
pub use render::render_for_model;
pub use source::{LogReader, OutputRead, OutputSource, Rendering, StreamText, last_lines};
pub use spill_dir::{SpillDir, SpillDirError};
pub use visible::{visible, visible_line};
