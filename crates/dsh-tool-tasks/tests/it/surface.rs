//! Everything the model sees, word by word.

use crate::support::Harness;
use dsh_tasks::Vocabulary;
use dsh_tool_tasks::{ToolTasksConfig, model_surface};
use expect_test::expect_file;

#[tokio::test]
async fn the_model_surface_is_as_reviewed() {
    for (vocabulary, file) in [
        (Vocabulary::Task, expect_file!["./surface/task.md"]),
        (Vocabulary::Job, expect_file!["./surface/job.md"]),
    ] {
        let harness = Harness::with(vocabulary, ToolTasksConfig::default());
        let guidance = harness.prompts.assemble().expect("assembles");
        file.assert_eq(&model_surface(
            &harness.tools.definitions(),
            &guidance,
            vocabulary,
        ));
    }
}

#[tokio::test]
async fn the_definitions_cost_little() {
    let harness = Harness::new();
    for definition in harness.tools.definitions() {
        let bytes = serde_json::to_string(&definition).expect("serializes").len();
        assert!(bytes <= 800, "{} has {bytes} bytes", definition.name);
    }
}

#[tokio::test]
async fn the_hints_say_which_tool_only_looks_and_which_destroys() {
    let harness = Harness::new();
    let hints: Vec<_> = harness
        .tools
        .definitions()
        .into_iter()
        .map(|definition| {
            (
                definition.name,
                definition.annotations.read_only,
                definition.annotations.destructive,
            )
        })
        .collect();
    assert_eq!(
        hints,
        [
            ("task_kill".to_owned(), Some(false), Some(true)),
            ("task_list".to_owned(), Some(true), None),
            ("task_output".to_owned(), Some(true), None),
        ]
    );
}

#[tokio::test]
async fn the_guidance_stands_right_behind_that_of_bash() {
    let harness = Harness::new();
    let sections = harness.prompts.sections();
    assert_eq!(sections.len(), 1);
    assert_eq!(
        (sections[0].name.as_str(), sections[0].order),
        ("tool:tasks", 106)
    );
}
