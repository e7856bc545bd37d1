//! Documents: what they point at exists.

use std::collections::BTreeSet;

use super::Finding;
use super::code::identifiers;
use super::tree::{Document, Tree};

/// Directories of one machine. Split, so that this file is not a finding.
const MACHINE: [&str; 4] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
];

/// The word before the names of the tests that guard a statement.
const GUARD: &str = "Guarded by";

/// A relative link leads to a file of the tree, and its fragment to a heading.
pub(super) fn links_resolve(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for document in tree
        .documents
        .iter()
        .filter(|document| document.path.ends_with(".md"))
    {
        for (number, line) in prose(document) {
            for target in links(line) {
                if let Some(problem) = broken(tree, document, target) {
                    findings.push(Finding::new(format!("{}:{number}", document.path), problem));
                }
            }
        }
    }
    findings
}

/// A long name in backticks (four words or more, as tests have) stands somewhere in the code.
pub(super) fn named_code_exists(tree: &Tree) -> Vec<Finding> {
    let known: BTreeSet<&str> = tree
        .sources
        .iter()
        .flat_map(|source| identifiers(&source.code).map(|(_, word)| word))
        .collect();
    let mut findings = Vec::new();
    for document in guides(tree) {
        for (number, line) in prose(document) {
            for name in code_spans(line).filter(|name| is_long_name(name) && !known.contains(name)) {
                let place = format!("{}:{number}", document.path);
                findings.push(Finding::new(
                    place,
                    format!("names `{name}`, which no source has"),
                ));
            }
        }
    }
    findings
}

/// What follows `Guarded by`, to the end of the paragraph or list item, are tests.
pub(super) fn guards_are_tests(tree: &Tree) -> Vec<Finding> {
    let tests: BTreeSet<&str> = tree
        .sources
        .iter()
        .flat_map(|source| source.test_functions())
        .collect();
    let mut findings = Vec::new();
    for document in guides(tree) {
        let mut guarding = false;
        for (number, line) in prose(document) {
            guarding &= !starts_anew(line);
            let names = match line.find(GUARD) {
                Some(at) => &line[at..],
                None if guarding => line,
                None => continue,
            };
            guarding = true;
            for name in code_spans(names).filter(|name| !tests.contains(name)) {
                let place = format!("{}:{number}", document.path);
                findings.push(Finding::new(
                    place,
                    format!("says `{name}` guards it, which is no test"),
                ));
            }
        }
    }
    findings
}

/// Nothing depends on where somebody's files lie.
pub(super) fn no_machine_paths(tree: &Tree) -> Vec<Finding> {
    let sources = tree.sources.iter().map(|source| (&source.path, &source.text));
    let documents = tree
        .documents
        .iter()
        .map(|document| (&document.path, &document.text));
    let mut findings = Vec::new();
    for (path, text) in sources.chain(documents) {
        for (number, line) in text.lines().enumerate() {
            for machine in MACHINE.iter().filter(|machine| line.contains(*machine)) {
                let problem = format!("has the path {machine} of one machine");
                findings.push(Finding::new(format!("{path}:{}", number + 1), problem));
            }
        }
    }
    findings
}

fn guides(tree: &Tree) -> impl Iterator<Item = &Document> {
    tree.documents
        .iter()
        .filter(|document| document.path.starts_with("docs/") && document.path.ends_with(".md"))
}

/// A blank line, a heading or a list item: what the line before said is over.
fn starts_anew(line: &str) -> bool {
    let line = line.trim_start();
    let numbered = line
        .split_once(". ")
        .is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    line.is_empty() || numbered || ["#", "- ", "* "].iter().any(|mark| line.starts_with(mark))
}

/// Lines outside code fences, numbered from 1.
fn prose(document: &Document) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    document
        .text
        .lines()
        .enumerate()
        .filter_map(move |(index, line)| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            (!fenced && !fence).then_some((index + 1, line))
        })
}

fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
}

fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_long_name(name: &str) -> bool {
    let plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.split('_').count() >= 4 && name.split('_').all(plain)
}

fn broken(tree: &Tree, document: &Document, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let resolved = if path.is_empty() {
        document.path.clone()
    } else {
        resolve(&document.path, path)
    };
    if !tree.paths.contains(resolved.trim_end_matches('/')) {
        return Some(format!("links to {target}, which does not exist"));
    }
    let linked = tree.documents.iter().find(|other| other.path == resolved)?;
    let missing =
        !fragment.is_empty() && !prose(linked).any(|(_, line)| anchor(line).as_deref() == Some(fragment));
    missing.then(|| format!("links to {target}, which has no such heading"))
}

/// Joins a link to the directory of the document it stands in.
fn resolve(document: &str, link: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The fragment of a heading, made the way the common renderers do.
fn anchor(line: &str) -> Option<String> {
    let heading = line
        .strip_prefix('#')?
        .trim_start_matches('#')
        .strip_prefix(' ')?;
    let kept = heading
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    Some(
        kept.flat_map(char::to_lowercase)
            .map(|c| if c == ' ' { '-' } else { c })
            .collect(),
    )
}

#[cfg(test)]
mod tests;
