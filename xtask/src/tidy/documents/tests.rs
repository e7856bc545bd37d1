//! Each document rule finds what it exists for.

use super::super::tree::Source;
use super::*;

fn tree(path: &str, text: &str) -> Tree {
    let other = Document {
        path: "docs/other.md".into(),
        text: "# A Heading: here\n".into(),
    };
    let documents = vec![
        Document {
            path: path.into(),
            text: text.into(),
        },
        other,
    ];
    let paths = documents.iter().map(|document| document.path.clone()).collect();
    let code = "#[cfg(test)]\nfn one_helper_of_tests() {}\n#[test]\nfn one_test_that_runs() {}\nfn one_plain_function_here() {}\n\
                #[tokio::test(start_paused = true)]\nasync fn another_test_that_runs() {}";
    Tree {
        documents,
        paths,
        sources: vec![Source::new("a.rs", code)],
        ..Tree::default()
    }
}

#[test]
fn a_broken_link_is_found() {
    let good = "[a](other.md) [b](other.md#a-heading-here) [c](https://example.org/x) [d](#top)\n# Top\n";
    assert_eq!(links_resolve(&tree("docs/a.md", good)), []);
    for link in ["missing.md", "other.md#no-heading", "#nowhere", "../other.md"] {
        let findings = links_resolve(&tree("docs/a.md", &format!("see [x]({link})")));
        assert_eq!(findings.len(), 1, "{link}");
    }
    assert_eq!(
        links_resolve(&tree("docs/a.md", "```\n[x](missing.md)\n```\n")),
        [],
        "code is not a link"
    );
}

#[test]
fn a_name_that_no_source_has_is_found() {
    assert_eq!(
        named_code_exists(&tree(
            "docs/a.md",
            "see `one_plain_function_here`, `task_id`, `a b_c_d_e`"
        )),
        []
    );
    let findings = named_code_exists(&tree("docs/a.md", "\nsee `one_test_that_left`"));
    assert_eq!(findings[0].place, "docs/a.md:2");
}

#[test]
fn a_guard_that_is_no_test_is_found() {
    let good = "Fact. Guarded by `one_test_that_runs`,\n`another_test_that_runs`.\n2. Then `anything`.";
    assert_eq!(guards_are_tests(&tree("docs/a.md", good)), []);
    let gone = "Guarded by `one_test_that_runs`,\n`gone`.";
    for bad in [
        "Guarded by `one_plain_function_here`.",
        "Guarded by `one_helper_of_tests`.",
        gone,
    ] {
        assert_eq!(guards_are_tests(&tree("docs/a.md", bad)).len(), 1, "{bad}");
    }
}

#[test]
fn a_machine_path_is_found_in_any_file() {
    assert_eq!(no_machine_paths(&tree("a.toml", "x = \"/usr/bin\"")), []);
    for machine in MACHINE {
        assert_eq!(
            no_machine_paths(&tree("a.toml", &format!("\nx = \"{machine}me\"")))[0].place,
            "a.toml:2"
        );
    }
}
