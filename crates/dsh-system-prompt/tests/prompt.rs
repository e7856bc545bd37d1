//! Sections, variables, and the scopes they live on.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails like a test")]

use dsh_scope::Scope;
use dsh_system_prompt::{AssembleError, PromptRegistry, RegisterError, Section, Variable};

fn prompt(sections: &[(&str, i32, &str)]) -> (Scope, PromptRegistry) {
    let (scope, prompts) = (Scope::root("s"), PromptRegistry::new());
    for &(name, order, text) in sections {
        prompts.section(&scope, Section::new(name, order, text)).unwrap();
    }
    (scope, prompts)
}

/// What a section with this text becomes, where `{{who}}` is known and `{{nobody}}` has no value.
fn rendered(text: &str) -> Result<String, AssembleError> {
    let (scope, prompts) = prompt(&[("tool:x", 1, text)]);
    prompts
        .variable(&scope, Variable::new("who", "{{nobody}} & co"))
        .unwrap();
    prompts
        .variable(
            &scope,
            Variable {
                name: "nobody".into(),
                value: None,
            },
        )
        .unwrap();
    prompts.assemble()
}

#[test]
fn core51_sections_stand_in_ascending_order_and_ties_in_that_of_registration() {
    let (_scope, prompts) = prompt(&[
        ("c", 105, "tie one"),
        ("b", 105, "tie two"),
        ("z", -100, "first"),
        ("a", i32::MAX, "last"),
    ]);
    assert_eq!(prompts.assemble().unwrap(), "first\n\ntie one\n\ntie two\n\nlast");
    let names: Vec<_> = prompts
        .sections()
        .into_iter()
        .map(|section| section.name)
        .collect();
    assert_eq!(names, ["z", "c", "b", "a"]);
}

#[test]
fn core51_an_empty_section_leaves_no_trace() {
    let (scope, prompts) = prompt(&[
        ("a", 1, "one"),
        ("b", 2, ""),
        ("c", 3, "{{empty}}"),
        ("d", 4, "two"),
    ]);
    prompts.variable(&scope, Variable::new("empty", "")).unwrap();
    assert_eq!(prompts.assemble().unwrap(), "one\n\ntwo");
    assert_eq!(PromptRegistry::new().assemble().unwrap(), "");
}

#[tokio::test]
async fn a_section_name_is_unique_until_it_is_free_again() {
    let (scope, prompts) = prompt(&[("a", 1, "from elsewhere")]);
    let taken = prompts
        .section(&scope, Section::new("a", 2, "again"))
        .unwrap_err();
    assert!(matches!(taken, RegisterError::DuplicateSection(ref name) if name == "a"));
    assert_eq!(taken.to_string(), r#"prompt section "a" is already registered"#);
    assert_eq!(prompts.assemble().unwrap(), "from elsewhere");

    let handle = prompts.section(&scope, Section::new("b", 2, "old")).unwrap();
    handle.dispose().await;
    prompts.section(&scope, Section::new("b", 2, "new")).unwrap();
    handle.dispose().await;
    assert_eq!(
        prompts.assemble().unwrap(),
        "from elsewhere\n\nnew",
        "a stale handle does not touch the successor"
    );
}

#[tokio::test]
async fn what_is_registered_lives_as_long_as_its_scope() {
    let (scope, prompts) = prompt(&[("stays", 1, "stays")]);
    let plugin = scope.child("plugin").unwrap();
    prompts
        .section(&plugin, Section::new("goes", 2, "{{name}}"))
        .unwrap();
    prompts.variable(&plugin, Variable::new("name", "goes")).unwrap();
    assert_eq!(prompts.assemble().unwrap(), "stays\n\ngoes");

    plugin.close().await.unwrap();
    assert_eq!(prompts.assemble().unwrap(), "stays");
    // Both names are free again, but a closed scope takes nothing.
    let closed = prompts.section(&plugin, Section::new("goes", 2, "")).unwrap_err();
    assert_eq!(
        closed.to_string(),
        r#"cannot create effect on inactive scope "plugin""#
    );
    assert!(prompts.variable(&plugin, Variable::new("name", "")).is_err());
    assert_eq!(prompts.sections().len(), 1);
    prompts.variable(&scope, Variable::new("name", "again")).unwrap();
    prompts
        .section(&scope, Section::new("goes", 2, "{{name}}"))
        .unwrap();
    assert_eq!(prompts.assemble().unwrap(), "stays\n\nagain");
}

#[test]
fn a_variable_name_is_unique_and_well_formed() {
    let (scope, prompts) = prompt(&[]);
    prompts.variable(&scope, Variable::new("a_1", "x")).unwrap();
    let taken = prompts.variable(&scope, Variable::new("a_1", "y")).unwrap_err();
    assert_eq!(
        taken.to_string(),
        r#"prompt variable "a_1" is already registered"#
    );
    for name in ["", "A", "1a", "_a", "a-b", "a b", " a", "aé", "a\n"] {
        let refused = prompts.variable(&scope, Variable::new(name, "x")).unwrap_err();
        assert!(matches!(refused, RegisterError::VariableName(_)), "{name:?}");
    }
}

#[test]
fn a_reference_is_replaced_by_the_value_as_it_is() {
    assert_eq!(
        rendered("for {{who}}, and {{who}}.").unwrap(),
        "for {{nobody}} & co, and {{nobody}} & co."
    );
    assert_eq!(rendered("{{who}}").unwrap(), "{{nobody}} & co");
}

#[test]
fn braces_that_open_nothing_are_prose() {
    for text in [
        "a {{ b",
        "a }} b",
        "}} {{",
        "{ who }",
        "{who}",
        "{{who",
        "who}}",
        "ends with {{",
    ] {
        assert_eq!(rendered(text).unwrap(), text);
    }
    assert_eq!(
        rendered("{{who}} then {{ open").unwrap(),
        "{{nobody}} & co then {{ open"
    );
}

#[test]
fn core52_a_reference_that_stands_for_nothing_names_its_section() {
    let unknown = rendered("to {{stranger}}").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        r#"prompt section "tool:x" refers to unknown variable "stranger""#
    );
    let valueless = rendered("to {{nobody}}").unwrap_err();
    assert_eq!(
        valueless.to_string(),
        r#"prompt section "tool:x" refers to variable "nobody", which has no value"#
    );
    let malformed = rendered("to {{ who }}").unwrap_err();
    assert_eq!(
        malformed.to_string(),
        r#"prompt section "tool:x" has a malformed reference "{{ who }}""#
    );
    for text in [
        "{{}}",
        "{{Who}}",
        "{{who-ever}}",
        "{{ open, and later }}",
        "{{{who}}}",
        "{{a {{who}}",
    ] {
        assert!(
            matches!(rendered(text), Err(AssembleError::Malformed { .. })),
            "{text}"
        );
    }
}

#[tokio::test]
async fn core6_one_readers_own_take_the_place_of_shared_ones_for_that_reader_alone() {
    let scope = Scope::root("test");
    let prompts = PromptRegistry::new();
    prompts
        .section(&scope, Section::new("persona", 0, "You are {{who}}."))
        .unwrap();
    prompts
        .section(&scope, Section::new("habits", 10, "Look first."))
        .unwrap();
    prompts.variable(&scope, Variable::new("who", "shared")).unwrap();
    let own = [
        Section::new("persona", 20, "I am {{who}}."),
        Section::new("cwd", 5, "Here: {{cwd}}"),
    ];
    let variables = [Variable::new("who", "own"), Variable::new("cwd", "/srv")];
    let prompt = prompts.assemble_with(&own, &variables).unwrap();
    assert_eq!(prompt, "Here: /srv\n\nLook first.\n\nI am own.");
    assert_eq!(prompts.assemble().unwrap(), "You are shared.\n\nLook first.");
}
