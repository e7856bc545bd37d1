//! How a source file looks.

use super::Finding;
use super::code::{identifiers, line_of};
use super::tree::{Source, Tree};

const MAX_LINES: usize = 450;

/// The one module with system calls that need `unsafe`: this file, and those below the directory of its name.
const UNSAFE_FILE: &str = "crates/dsh-subprocess/src/sys.rs";
const UNSAFE_DIRECTORY: &str = "crates/dsh-subprocess/src/sys/";

/// Code that must not stand anywhere, and what to do instead.
const FORBIDDEN: [(&str, &str); 7] = [
    (
        "#[ignore",
        "a test that does not run proves nothing: make it run or delete it",
    ),
    ("#[should_panic", "assert the error itself"),
    ("#[allow(", "use #[expect(lint, reason = \"…\")]"),
    ("#![allow(", "use #![expect(lint, reason = \"…\")]"),
    ("todo!(", "finish it or leave it out"),
    ("unimplemented!(", "finish it or leave it out"),
    ("dbg!(", "use tracing"),
];

/// Comments that announce unfinished work.
const UNFINISHED: [&str; 3] = [concat!("FIX", "ME"), concat!("XX", "X:"), concat!("TO", "DO")];

/// Every file says first what it is; a module's `tests.rs` is what its name says.
pub(super) fn opens_with_documentation(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        if !source.text.starts_with("//!") && !source.path.ends_with("/tests.rs") {
            findings.push(Finding::new(
                &source.path,
                "does not start with `//!` documentation",
            ));
        }
    }
    findings
}

/// A long file is two things. Functions are bounded by `clippy::too_many_lines`.
pub(super) fn stays_short(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let lines = source.text.lines().count();
        if lines > MAX_LINES {
            findings.push(Finding::new(
                &source.path,
                format!("has {lines} lines, at most {MAX_LINES} are allowed"),
            ));
        }
    }
    findings
}

/// No ignored tests, no silenced lints, nothing unfinished.
pub(super) fn forbidden_code(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for (text, remedy) in FORBIDDEN {
            for (at, _) in source.code.match_indices(text) {
                findings.push(found(source, at, format!("`{text}` is not used here: {remedy}")));
            }
        }
        for word in UNFINISHED {
            for (at, _) in source.text.match_indices(word) {
                findings.push(found(
                    source,
                    at,
                    format!("`{word}` marks unfinished work: finish it or file an issue"),
                ));
            }
        }
    }
    findings
}

/// `unsafe` stands in one module, where each block has its proof.
pub(super) fn unsafe_stays_in_one_module(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let elsewhere =
        |source: &&Source| source.path != UNSAFE_FILE && !source.path.starts_with(UNSAFE_DIRECTORY);
    for source in tree.sources.iter().filter(elsewhere) {
        for (at, _) in identifiers(&source.code).filter(|(_, word)| *word == "unsafe") {
            findings.push(found(source, at, format!("`unsafe` belongs in {UNSAFE_FILE}")));
        }
    }
    findings
}

/// Test code sleeps only where time itself is the subject, and says so: `// sleep: reason` on the line or above.
pub(super) fn tests_wait_for_facts(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree
        .sources
        .iter()
        .filter(|source| !source.path.starts_with("crates/dsh-testkit/"))
    {
        let begin = source.tests_begin();
        let lines: Vec<&str> = source.text.lines().collect();
        for (at, _) in identifiers(&source.code).filter(|(_, word)| ["sleep", "sleep_until"].contains(word)) {
            let line = line_of(&source.code, at);
            let is_call = source.code[at..]
                .trim_start_matches(char::is_alphabetic)
                .starts_with(['(', '_']);
            let explained = lines[line.saturating_sub(2)..line]
                .iter()
                .any(|line| line.contains("// sleep: "));
            if at >= begin && is_call && !explained {
                findings.push(found(
                    source,
                    at,
                    "a test waits for a fact, not for time (or says why: `// sleep: …`)",
                ));
            }
        }
    }
    findings
}

fn found(source: &Source, at: usize, problem: impl Into<String>) -> Finding {
    Finding::new(format!("{}:{}", source.path, line_of(&source.text, at)), problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree {
            sources: vec![Source::new(path, text)],
            ..Tree::default()
        }
    }

    #[test]
    fn a_file_without_documentation_is_found() {
        assert_eq!(opens_with_documentation(&tree("a.rs", "//! What it is.\n")), []);
        assert_eq!(
            opens_with_documentation(&tree("a.rs", "// What it is.\n")).len(),
            1
        );
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(stays_short(&tree("a.rs", &"\n".repeat(MAX_LINES))), []);
        assert_eq!(stays_short(&tree("a.rs", &"\n".repeat(MAX_LINES + 1))).len(), 1);
    }

    #[test]
    fn forbidden_code_is_found_and_comments_about_it_are_not() {
        for (text, _) in FORBIDDEN {
            assert_eq!(
                forbidden_code(&tree("a.rs", &format!("x {text}"))).len(),
                1,
                "{text}"
            );
            assert_eq!(
                forbidden_code(&tree("a.rs", &format!("// no {text}\n\"{text}\""))),
                [],
                "{text}"
            );
        }
        let unfinished = format!("//! A.\n// {}: later", UNFINISHED[0]);
        assert_eq!(forbidden_code(&tree("a.rs", &unfinished))[0].place, "a.rs:2");
    }

    #[test]
    fn unsafe_elsewhere_is_found() {
        assert_eq!(
            unsafe_stays_in_one_module(&tree(UNSAFE_FILE, "unsafe { f() }")),
            []
        );
        assert_eq!(
            unsafe_stays_in_one_module(&tree("a.rs", "#[expect(unsafe_code)] unsafe { f() }")).len(),
            1
        );
    }

    #[test]
    fn a_bare_sleep_in_a_test_is_found() {
        let bare = "fn a() {\n    tokio::time::sleep(ms(5)).await;\n}";
        assert_eq!(
            tests_wait_for_facts(&tree("crates/x/tests/a.rs", bare))[0].place,
            "crates/x/tests/a.rs:2"
        );
        assert_eq!(
            tests_wait_for_facts(&tree("crates/x/src/a.rs", bare)),
            [],
            "not a test"
        );
        let module = format!("#[cfg(test)]\nmod tests {{ {bare} }}");
        assert_eq!(tests_wait_for_facts(&tree("crates/x/src/a.rs", &module)).len(), 1);
        let explained = "// sleep: the deadline is the subject\nsleep(ms(5)).await;";
        assert_eq!(tests_wait_for_facts(&tree("crates/x/tests/a.rs", explained)), []);
        assert_eq!(
            tests_wait_for_facts(&tree(
                "crates/x/tests/a.rs",
                "run(\"sleep 5\"); use tokio::time::sleep;"
            )),
            []
        );
    }
}
