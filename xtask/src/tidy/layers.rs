//! The layers: who may depend on whom.

use super::Finding;
use super::tree::Tree;
use crate::workspace::{Dependency, Kind, Package};

/// Layer by layer from the bottom. A package depends only on packages of a lower layer.
const LAYERS: [&[&str]; 11] = [
    &["dsh-testkit"],
    &["dsh-scope", "dsh-llm", "dsh-output"],
    &["dsh-session", "dsh-subprocess", "dsh-bash"],
    &[
        "dsh-agent",
        "dsh-bash-local",
        "dsh-llm-scripted",
        "dsh-llm-openai",
    ],
    &["dsh-tools", "dsh-system-prompt", "dsh-tasks", "dsh-subagent"],
    &[
        "dsh-tool-tasks",
        "dsh-tool-bash",
        "dsh-tool-subagent",
        "dsh-agent-loop",
        "dsh-subagent-inprocess",
        "dsh-subagent-process",
    ],
    &[
        "dsh-subagent-codex",
        "dsh-subagent-claude-code",
        "dsh-subagent-acp",
    ],
    &["dsh-agent-core"],
    &["dsh-mcp", "dsh-acp"],
    &["dsh"],
    &["bench", "checks", "tests"],
];

/// Build automation stands outside: it depends on nobody, and nobody on it.
const OUTSIDE: &str = "xtask";

/// For tests only.
const FOR_TESTS: &str = "dsh-testkit";

/// Crates from outside that change often, each with the packages that may know it.
const BEHIND: [(&str, &[&str]); 2] = [
    ("rmcp", &["dsh-mcp"]),
    ("agent-client-protocol", &["dsh-acp", "dsh-subagent-acp"]),
];

/// What nobody pays for who has not chosen it.
const PRODUCTS: [&str; 3] = [
    "dsh-subagent-codex",
    "dsh-subagent-claude-code",
    "dsh-subagent-acp",
];

/// Where everything is there, products included.
const WITH_PRODUCTS: [&str; 2] = ["dsh", "tests"];

/// The table names every package, and no other.
pub(super) fn every_package_has_a_layer(tree: &Tree) -> Vec<Finding> {
    let unplaced = tree
        .packages
        .iter()
        .filter(|package| package.name != OUTSIDE && layer(&package.name).is_none());
    let mut findings: Vec<Finding> = unplaced
        .map(|package| {
            Finding::new(
                &package.name,
                "has no layer: add it to the table in xtask/src/tidy/layers.rs",
            )
        })
        .collect();
    for name in LAYERS.iter().flat_map(|names| names.iter()) {
        if !tree.packages.iter().any(|package| package.name == *name) {
            findings.push(Finding::new(*name, "stands in the layer table but is no package"));
        }
    }
    findings
}

/// Every edge goes to a lower layer, development dependencies too.
pub(super) fn edges_go_down(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        for dependency in package.dependencies.iter().filter(|dependency| dependency.local) {
            if let Some(problem) = edge(package, dependency) {
                findings.push(Finding::new(&package.name, problem));
            }
        }
    }
    findings
}

/// A crate that changes often is known to one package.
pub(super) fn crates_that_stay_behind_others(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        for (guarded, only) in BEHIND {
            let named = package
                .dependencies
                .iter()
                .any(|dependency| dependency.name == guarded);
            if named && !only.contains(&&*package.name) {
                findings.push(Finding::new(
                    &package.name,
                    format!("depends on {guarded}, which only {} may", only.join(" and ")),
                ));
            }
        }
    }
    findings
}

/// Products are there with a feature that is no default, except in the program and its tests.
pub(super) fn products_are_chosen(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let packages = tree.packages.iter();
    for package in packages.filter(|package| !WITH_PRODUCTS.contains(&&*package.name)) {
        let products = package.dependencies.iter();
        let products = products.filter(|dependency| PRODUCTS.contains(&&*dependency.name));
        let paid = products.filter(|dependency| dependency.kind == Kind::Normal && !dependency.optional);
        findings.extend(paid.map(|product| {
            let problem = format!(
                "depends on {} whether it was chosen or not: make it optional",
                product.name
            );
            Finding::new(&package.name, problem)
        }));
        let has_product = package.dependencies.iter().any(|dependency| dependency.optional);
        if has_product && !package.default_features.is_empty() {
            findings.push(Finding::new(&package.name, "switches a feature on by default"));
        }
    }
    findings
}

/// A package is found where its name says.
pub(super) fn directory_is_the_name(tree: &Tree) -> Vec<Finding> {
    let misplaced = tree
        .packages
        .iter()
        .filter(|package| package.directory.rsplit('/').next() != Some(&*package.name));
    misplaced
        .map(|package| {
            Finding::new(
                &package.name,
                format!("lies in {}, not in its own name", package.directory),
            )
        })
        .collect()
}

fn edge(package: &Package, dependency: &Dependency) -> Option<String> {
    let name = &dependency.name;
    if package.name == OUTSIDE || name == OUTSIDE {
        return Some(format!("depends on {name}: {OUTSIDE} stands outside"));
    }
    if name == FOR_TESTS && dependency.kind != Kind::Dev && package.name != "tests" {
        return Some(format!("depends on {name} outside its tests"));
    }
    match (layer(&package.name), layer(name)) {
        (Some(from), Some(to)) if to >= from => {
            Some(format!("is in layer {from} and depends on {name} in layer {to}"))
        }
        _ => None,
    }
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, directory: &str, dependencies: &[(&str, Kind, bool)]) -> Tree {
        let dependencies = dependencies.iter().map(|(name, kind, local)| Dependency {
            name: (*name).to_owned(),
            kind: *kind,
            local: *local,
            optional: false,
        });
        let package = Package {
            name: name.to_owned(),
            directory: directory.to_owned(),
            dependencies: dependencies.collect(),
            default_features: Vec::new(),
            tests: Vec::new(),
        };
        Tree {
            packages: vec![package],
            ..Tree::default()
        }
    }

    #[test]
    fn a_package_without_a_layer_is_found() {
        let findings = every_package_has_a_layer(&tree("dsh-new", "crates/dsh-new", &[]));
        assert!(
            findings.iter().any(|finding| finding.place == "dsh-new"),
            "{findings:?}"
        );
        assert!(
            findings.iter().any(|finding| finding.place == "dsh-tasks"),
            "a stale row: {findings:?}"
        );
    }

    #[test]
    fn an_edge_up_or_sideways_is_found_also_in_tests() {
        assert_eq!(
            edges_go_down(&tree("dsh-tasks", "x", &[("dsh-agent", Kind::Normal, true)])),
            []
        );
        for (name, kind) in [("dsh-tool-tasks", Kind::Normal), ("dsh-tools", Kind::Dev)] {
            assert_eq!(
                edges_go_down(&tree("dsh-tasks", "x", &[(name, kind, true)])).len(),
                1,
                "{name}"
            );
        }
    }

    #[test]
    fn automation_and_test_tools_stay_out_of_the_product() {
        assert_eq!(
            edges_go_down(&tree("xtask", "xtask", &[("dsh-llm", Kind::Normal, true)])).len(),
            1
        );
        assert_eq!(
            edges_go_down(&tree("dsh-scope", "x", &[("dsh-testkit", Kind::Normal, true)])).len(),
            1
        );
        assert_eq!(
            edges_go_down(&tree("dsh-scope", "x", &[("dsh-testkit", Kind::Dev, true)])),
            []
        );
    }

    #[test]
    fn a_guarded_crate_is_found_elsewhere() {
        let rmcp = [("rmcp", Kind::Normal, false)];
        assert_eq!(crates_that_stay_behind_others(&tree("dsh-mcp", "x", &rmcp)), []);
        assert_eq!(
            crates_that_stay_behind_others(&tree("dsh-tools", "x", &rmcp)).len(),
            1
        );
    }

    #[test]
    fn a_product_that_nobody_chose_is_found() {
        let codex = [("dsh-subagent-codex", Kind::Normal, true)];
        let mut core = tree("dsh-agent-core", "x", &codex);
        assert_eq!(products_are_chosen(&core).len(), 1);
        core.packages[0].dependencies[0].optional = true;
        assert_eq!(products_are_chosen(&core), []);
        core.packages[0].default_features.push("codex".to_owned());
        assert_eq!(products_are_chosen(&core).len(), 1);
        assert_eq!(products_are_chosen(&tree("dsh", "x", &codex)), []);
    }

    #[test]
    fn a_misnamed_directory_is_found() {
        assert_eq!(directory_is_the_name(&tree("dsh-mcp", "crates/dsh-mcp", &[])), []);
        assert_eq!(
            directory_is_the_name(&tree("dsh-mcp", "crates/mcp", &[])).len(),
            1
        );
    }
}
