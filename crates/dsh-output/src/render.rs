//! Raw bytes of a terminal program as text for a model.
//!
//! Every line is rendered on its own, as if it were the only one: an escape sequence or a progress frame never
//! reaches over a newline. So the rendering of two groups of complete lines is the rendering of both together.

use anstyle_parse::state::{Action, State, state_change};

/// The longest unfinished escape sequence that a reader waits for.
pub(crate) const MAX_UNFINISHED: usize = 256;

/// Renders raw output for the model.
///
/// - Invalid UTF-8 becomes U+FFFD.
/// - Escape sequences (colours, titles, links) are removed. Of cursor movements only what progress displays need is
///   followed: carriage return, backspace, "erase line" and "column 1".
/// - A carriage return starts the line again, so of a progress display the last frame remains. `\r\n` is a newline.
/// - Other control characters are shown as their Unicode pictures (NUL as `␀`), except the bell, which is dropped.
///
/// The text has at most three bytes for each byte of `bytes`.
///
/// ```
/// assert_eq!(dsh_output::render_for_model(b"\x1b[32mok\x1b[0m\r\n 10%\r100%\n"), "ok\n100%\n");
/// ```
pub fn render_for_model(bytes: &[u8]) -> String {
    let mut terminal = Terminal::default();
    for character in String::from_utf8_lossy(bytes).chars() {
        terminal.feed(character);
    }
    terminal.finish()
}

/// How many bytes at the end of `bytes` begin a character or an escape sequence without ending it.
///
/// Only what more bytes can still complete counts, and of an escape sequence at most [`MAX_UNFINISHED`] bytes: a
/// reader must never wait for something that may not come for the rest of the output.
pub(crate) fn unfinished(bytes: &[u8]) -> usize {
    let recent = &bytes[bytes.len().saturating_sub(MAX_UNFINISHED)..];
    let line = recent
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(recent, |newline| &recent[newline + 1..]);
    if let Some(escape) = line.iter().rposition(|&byte| byte == 0x1b) {
        let end = line[escape..]
            .iter()
            .fold(State::Ground, |state, &byte| step(state, byte).0);
        if end != State::Ground {
            return line.len() - escape;
        }
    }
    unfinished_utf8(line)
}

/// How many bytes at the end of `bytes` are a valid but incomplete UTF-8 sequence.
pub(crate) fn unfinished_utf8(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    (0..last.len())
        .find(|&start| {
            std::str::from_utf8(&last[start..])
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .map_or(0, |start| last.len() - start)
}

/// The table of `anstyle-parse`, with its conventions resolved: bytes of multi-byte characters are text in the
/// ground state, payload inside strings, and break off any other sequence.
fn step(state: State, byte: u8) -> (State, Action) {
    if byte >= 0x80 {
        return match state {
            State::OscString | State::DcsPassthrough | State::DcsIgnore | State::SosPmApcString => {
                (state, Action::Nop)
            }
            _ => (State::Ground, Action::Print),
        };
    }
    match state_change(state, byte) {
        (State::Anywhere, action) => (state, action),
        change => change,
    }
}

/// A one-line screen and the text above it.
#[derive(Default)]
struct Terminal {
    text: String,
    /// Where in `text` the current line begins.
    line: usize,
    /// The cursor stands here, before the end of the line: the next character replaces everything from here on.
    rewind: Option<usize>,
    state: State,
    /// The first number of the control sequence being read.
    parameter: Option<u8>,
}

impl Terminal {
    fn feed(&mut self, character: char) {
        if character == '\n' {
            self.newline();
            return;
        }
        let byte = u8::try_from(character).ok().filter(u8::is_ascii).unwrap_or(0xff);
        let before = self.state;
        let (state, action) = step(before, byte);
        self.state = state;
        match action {
            Action::Print => self.print(character),
            // CAN and SUB inside a sequence end it and are no text themselves.
            Action::Execute if before == State::Ground || state == before => self.control(character),
            Action::Param if byte.is_ascii_digit() => {
                let number = self
                    .parameter
                    .unwrap_or(0)
                    .saturating_mul(10)
                    .saturating_add(byte - b'0');
                self.parameter = Some(number);
            }
            Action::CsiDispatch => self.control_sequence(byte),
            _ => {}
        }
        if matches!(state, State::Ground | State::Escape) {
            self.parameter = None;
        }
    }

    fn newline(&mut self) {
        self.text.push('\n');
        self.line = self.text.len();
        self.rewind = None;
        self.state = State::Ground;
        self.parameter = None;
    }

    fn print(&mut self, character: char) {
        self.erase();
        match character {
            '\u{7f}' => self.text.push('\u{2421}'),
            '\u{80}'..='\u{9f}' => self.text.push(char::REPLACEMENT_CHARACTER),
            _ => self.text.push(character),
        }
    }

    fn control(&mut self, character: char) {
        match character {
            '\r' => self.rewind = Some(self.line),
            '\u{8}' => self.step_back(),
            '\u{7}' => {}
            '\t' => self.print('\t'),
            _ => self
                .print(char::from_u32(0x2400 + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }

    fn step_back(&mut self) {
        let cursor = self.rewind.unwrap_or(self.text.len());
        self.rewind = self.text[self.line..cursor]
            .char_indices()
            .next_back()
            .map(|(at, _)| self.line + at)
            .or(self.rewind);
    }

    fn control_sequence(&mut self, kind: u8) {
        match (kind, self.parameter.unwrap_or(0)) {
            (b'K', 0) => self.erase(),
            (b'K', 2) => self.text.truncate(self.line),
            (b'G', 0 | 1) => self.rewind = Some(self.line),
            _ => {}
        }
        self.rewind = self.rewind.filter(|&at| at < self.text.len());
    }

    /// Removes what the cursor stands before.
    fn erase(&mut self) {
        if let Some(at) = self.rewind.take() {
            self.text.truncate(at);
        }
    }

    fn finish(self) -> String {
        self.text
    }
}
