//! Rust source with comments and literals blanked out, so that rules look at code only.
//!
//! Blanked characters become spaces and line breaks stay, so positions and line numbers are those of the file.

/// Which parts of a source text stay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Code and string literals; comments are blanked.
    Literals,
    /// Code alone.
    Code,
}

/// Blanks what `keep` does not name.
pub(super) fn blank(source: &str, keep: Keep) -> String {
    let mut scanner = Scanner {
        rest: source,
        out: String::with_capacity(source.len()),
        keep,
    };
    while !scanner.rest.is_empty() {
        scanner.step();
    }
    scanner.out
}

/// The identifiers of a text that [`blank`] returned, with their positions.
pub(super) fn identifiers(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = None;
    let ends = code.char_indices().chain(std::iter::once((code.len(), ' ')));
    ends.filter_map(move |(at, character)| {
        if character.is_alphanumeric() || character == '_' {
            start.get_or_insert(at);
            return None;
        }
        start.take().map(|from| (from, &code[from..at]))
    })
}

/// The line number, from 1, of a position.
pub(super) fn line_of(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}

struct Scanner<'source> {
    rest: &'source str,
    out: String,
    keep: Keep,
}

impl Scanner<'_> {
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            self.blank_bytes(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.blank_bytes(block_comment(rest));
        } else if let Some(length) = raw_string(rest).filter(|_| !self.in_a_word()) {
            self.literal(length);
        } else if rest.starts_with('"') {
            self.literal(quoted(rest, '"'));
        } else if let Some(length) = character(rest) {
            self.literal(length);
        } else {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            self.copy(next);
        }
    }

    /// An `r` or `br` that ends an identifier does not open a raw string.
    fn in_a_word(&self) -> bool {
        self.out
            .chars()
            .next_back()
            .is_some_and(|last| last.is_alphanumeric() || last == '_')
    }

    fn literal(&mut self, length: usize) {
        match self.keep {
            Keep::Literals => self.copy(length),
            Keep::Code => self.blank_bytes(length),
        }
    }

    fn copy(&mut self, length: usize) {
        let (done, rest) = self.rest.split_at(length);
        self.out.push_str(done);
        self.rest = rest;
    }

    fn blank_bytes(&mut self, length: usize) {
        let (done, rest) = self.rest.split_at(length);
        self.out
            .extend(done.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

/// Length of the (nested) block comment that `text` starts with.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of the raw string literal that `text` starts with, if it does.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"]
        .into_iter()
        .find(|prefix| text.starts_with(prefix))?;
    let after = &text[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let open = prefix.len() + hashes + 1;
    Some(body.find(&end).map_or(text.len(), |at| open + at + end.len()))
}

/// Length of the literal between two `quote`s, escapes respected.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of the character literal that `text` starts with; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let mut characters = text.char_indices();
    (characters.next()?.1 == '\'').then_some(())?;
    let (_, first) = characters.next()?;
    let (at, second) = characters.next()?;
    if first == '\\' {
        return Some(quoted(text, '\''));
    }
    (second == '\'').then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let source = "let a = \"// no\\\" todo\"; // todo\n/* x /* y */ todo */ fn f<'a>(c: &'a str) -> char { '\"' }\n\
                      let b = r#\"todo \" here\"#; let tar = b'\\'';";
        let code = blank(source, Keep::Code);
        assert_eq!(code.len(), source.len());
        assert!(!code.contains("todo"), "{code}");
        assert!(code.contains("fn f<'a>(c: &'a str) -> char {"), "{code}");
        assert!(code.ends_with(';') && code.contains("let tar"), "{code}");
        assert_eq!(code.matches('\n').count(), 2);
    }

    #[test]
    fn strings_can_stay_while_comments_go() {
        assert_eq!(
            blank("f(\"bash\") // bash", Keep::Literals).trim_end(),
            "f(\"bash\")"
        );
    }

    #[test]
    fn identifiers_come_with_their_places() {
        let found: Vec<_> = identifiers("let a_b = c;").collect();
        assert_eq!(found, [(0, "let"), (4, "a_b"), (10, "c")]);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
