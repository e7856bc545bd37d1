//! `cargo xtask tidy`: what neither the compiler nor clippy checks.
//!
//! Each rule is a function from the tree to findings, so each has tests that show it can fail.

mod code;
mod documents;
mod layers;
mod style;
mod tree;
mod words;

use crate::error::Error;
use crate::workspace::Workspace;
use tree::Tree;

/// One thing that is wrong.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// A path, `path:line`, or the name of a package.
    place: String,
    problem: String,
}

impl Finding {
    fn new(place: impl Into<String>, problem: impl Into<String>) -> Finding {
        Finding {
            place: place.into(),
            problem: problem.into(),
        }
    }
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: [Rule; 15] = [
    layers::every_package_has_a_layer,
    layers::edges_go_down,
    layers::crates_that_stay_behind_others,
    layers::products_are_chosen,
    layers::directory_is_the_name,
    style::opens_with_documentation,
    style::stays_short,
    style::forbidden_code,
    style::unsafe_stays_in_one_module,
    style::tests_wait_for_facts,
    words::crates_know_their_place,
    documents::links_resolve,
    documents::named_code_exists,
    documents::guards_are_tests,
    documents::no_machine_paths,
];

/// Applies every rule and prints what it finds.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    let tree = Tree::read(workspace)?;
    let findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    for finding in &findings {
        println!("{}: {}", finding.place, finding.problem);
    }
    if findings.is_empty() {
        println!(
            "tidy: {} source files, {} documents",
            tree.sources.len(),
            tree.documents.len()
        );
        Ok(())
    } else {
        Err(Error::Untidy(findings.len()))
    }
}
