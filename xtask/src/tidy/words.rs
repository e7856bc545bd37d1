//! What a crate must not know of.

use super::Finding;
use super::code::{Keep, blank, identifiers, line_of};
use super::tree::{Source, Tree};

/// A crate, and the words that its code (names and strings, not comments or tests) does not contain.
const UNKNOWN: [(&str, &[&str]); 3] = [
    ("crates/dsh-tasks/src/", &["bash", "subagent"]),
    ("crates/dsh-bash/src/", &["task", "job"]),
    ("crates/dsh-subprocess/src/", &["task", "job"]),
];

/// Names of the async runtime, of scopes and of the kernel that contain such a word and mean something else.
const OTHER_MEANINGS: [&str; 4] = ["tokio::task", "std::task", "TrackedTask", "/proc/{pid}/task"];

/// The registry names no producer, and what runs commands names no registry.
pub(super) fn crates_know_their_place(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, unknown) in UNKNOWN {
        for source in tree
            .sources
            .iter()
            .filter(|source| source.path.starts_with(directory))
        {
            findings.extend(named(source, unknown));
        }
    }
    findings
}

fn named(source: &Source, unknown: &[&str]) -> Vec<Finding> {
    let mut text = blank(&source.text, Keep::Literals);
    text.truncate(source.tests_begin());
    for other in OTHER_MEANINGS {
        text = text.replace(other, &" ".repeat(other.len()));
    }
    let mut findings = Vec::new();
    for (at, identifier) in identifiers(&text) {
        for word in unknown
            .iter()
            .filter(|word| words(identifier).any(|part| part.trim_end_matches('s') == **word))
        {
            let place = format!("{}:{}", source.path, line_of(&text, at));
            findings.push(Finding::new(
                place,
                format!("`{identifier}` names {word}, which this crate does not know"),
            ));
        }
    }
    findings
}

/// The words of an identifier in any case: `task_id`, `TaskId`, `TASK_ID`.
fn words(identifier: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for character in identifier.chars() {
        if character == '_' || (lower && character.is_uppercase()) {
            words.push(String::new());
        }
        lower = character.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| character != '_') {
            word.extend(character.to_lowercase());
        }
    }
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        let tree = Tree {
            sources: vec![Source::new(path, text)],
            ..Tree::default()
        };
        crates_know_their_place(&tree).len()
    }

    #[test]
    fn a_crate_that_names_another_world_is_found() {
        for text in [
            "struct TaskId;",
            "let task_id = 1;",
            "f(\"no task here\")",
            "const MAX_TASKS: u8 = 1;",
            "use dsh_tasks::X;",
        ] {
            assert_eq!(findings("crates/dsh-bash/src/a.rs", text), 1, "{text}");
        }
        assert_eq!(
            findings("crates/dsh-tasks/src/a.rs", "enum Kind { Bash, Subagent }"),
            2
        );
    }

    #[test]
    fn comments_tests_and_the_runtime_may_say_it() {
        for text in [
            "// a task",
            "tokio::task::yield_now()",
            "#[cfg(test)]\nmod tests { struct Task; }",
            "multitasking()",
        ] {
            assert_eq!(findings("crates/dsh-bash/src/a.rs", text), 0, "{text}");
        }
        assert_eq!(findings("crates/dsh-bash/tests/a.rs", "struct Task;"), 0);
    }
}
