//! What the model is shown, and what a person is.

use dsh_subagent::ParentContext;
use dsh_tasks::Vocabulary;
use dsh_tool_subagent::{ToolSubagentConfig, install};
use dsh_tools::{CallCard, CardKind, Concurrency, ToolDefinition};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::rig::{Rig, args, background};
use crate::scripted::Script;

#[derive(Clone, Copy)]
enum Background {
    On,
    Off,
    NoRegistry,
}

fn definition(context: ParentContext, background: Background, vocabulary: Vocabulary) -> ToolDefinition {
    let rig = Rig::without_surface(vocabulary);
    let script = Script {
        context,
        ..Script::default()
    };
    rig.provide("helper", script);
    let mut deps = rig.deps();
    let mut config = ToolSubagentConfig::new("helper");
    match background {
        Background::On => {}
        Background::Off => config.enable_run_in_background = false,
        Background::NoRegistry => deps.tasks = None,
    }
    install(&rig.scope, deps, config).unwrap();
    rig.tools.definitions().remove(0)
}

fn check(definition: &ToolDefinition, expected: &Expect) {
    expected.assert_eq(&serde_json::to_string_pretty(definition).unwrap());
}

/// All sentences of a definition.
fn texts(definition: &ToolDefinition) -> String {
    serde_json::to_string(definition).unwrap()
}

fn parameters(definition: &ToolDefinition) -> Vec<String> {
    let properties = definition.input_schema["properties"].as_object().unwrap();
    properties.keys().cloned().collect()
}

#[tokio::test]
async fn s23_s40_a_fresh_child_in_both_grounds() {
    let definition = definition(ParentContext::Fresh, Background::On, Vocabulary::Task);
    assert_eq!(
        parameters(&definition),
        ["description", "prompt", "run_in_background"]
    );
    let texts = texts(&definition);
    for phrase in [
        "does not see this conversation",
        "include everything it needs",
        "task_output",
        "task_kill",
    ] {
        assert!(texts.contains(phrase), "{phrase}");
    }
    check(
        &definition,
        &expect![[r#"
        {
          "name": "subagent",
          "description": "Hand a self-contained piece of work to a separate agent. It does not see this conversation: give it a complete prompt. You get its final answer, not its steps. The call waits for it; with `run_in_background: true` you get a task id instead, are told when it ends, and use task_output and task_kill. Calls run side by side.",
          "inputSchema": {
            "type": "object",
            "properties": {
              "description": {
                "type": "string",
                "description": "What is delegated, in 3 to 5 words for the user, e.g. \"Find callers of parse\"."
              },
              "prompt": {
                "type": "string",
                "description": "The whole task: include everything it needs, such as paths, findings so far, and what to answer with."
              },
              "run_in_background": {
                "type": "boolean",
                "description": "Return a task id at once instead of waiting (default false); read it with task_output, stop it with task_kill."
              }
            },
            "required": [
              "description",
              "prompt"
            ]
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "openWorldHint": true
          }
        }"#]],
    );
}

#[tokio::test]
async fn s41_an_inheriting_child_in_the_words_of_jobs() {
    let definition = definition(ParentContext::CompletedTurns, Background::On, Vocabulary::Job);
    let texts = texts(&definition);
    for phrase in [
        "inherits this conversation",
        "completed turns",
        "job_output",
        "job_kill",
    ] {
        assert!(texts.contains(phrase), "{phrase}");
    }
    for phrase in ["does not see this conversation", "task"] {
        assert!(!definition.description.contains(phrase), "{phrase}");
    }
    check(
        &definition,
        &expect![[r#"
        {
          "name": "subagent",
          "description": "Hand a piece of work to a separate agent that inherits this conversation: all completed turns, not the one you are in. You get its final answer, not its steps. The call waits for it; with `run_in_background: true` you get a job id instead, are told when it ends, and use job_output and job_kill. Calls run side by side.",
          "inputSchema": {
            "type": "object",
            "properties": {
              "description": {
                "type": "string",
                "description": "What is delegated, in 3 to 5 words for the user, e.g. \"Find callers of parse\"."
              },
              "prompt": {
                "type": "string",
                "description": "The task. The completed turns are known to it: say what to do, and what is new in this turn."
              },
              "run_in_background": {
                "type": "boolean",
                "description": "Return a job id at once instead of waiting (default false); read it with job_output, stop it with job_kill."
              }
            },
            "required": [
              "description",
              "prompt"
            ]
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "openWorldHint": true
          }
        }"#]],
    );
}

#[tokio::test]
async fn s24_without_the_background_nothing_speaks_of_it() {
    let fresh = definition(ParentContext::Fresh, Background::Off, Vocabulary::Task);
    assert_eq!(parameters(&fresh), ["description", "prompt"]);
    assert!(!texts(&fresh).contains("task_output"));
    check(
        &fresh,
        &expect![[r#"
        {
          "name": "subagent",
          "description": "Hand a self-contained piece of work to a separate agent. It does not see this conversation: give it a complete prompt. You get its final answer, not its steps. The call waits for it. Calls run side by side.",
          "inputSchema": {
            "type": "object",
            "properties": {
              "description": {
                "type": "string",
                "description": "What is delegated, in 3 to 5 words for the user, e.g. \"Find callers of parse\"."
              },
              "prompt": {
                "type": "string",
                "description": "The whole task: include everything it needs, such as paths, findings so far, and what to answer with."
              }
            },
            "required": [
              "description",
              "prompt"
            ]
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "openWorldHint": true
          }
        }"#]],
    );
    let inheriting = definition(ParentContext::CompletedTurns, Background::Off, Vocabulary::Job);
    check(
        &inheriting,
        &expect![[r#"
        {
          "name": "subagent",
          "description": "Hand a piece of work to a separate agent that inherits this conversation: all completed turns, not the one you are in. You get its final answer, not its steps. The call waits for it. Calls run side by side.",
          "inputSchema": {
            "type": "object",
            "properties": {
              "description": {
                "type": "string",
                "description": "What is delegated, in 3 to 5 words for the user, e.g. \"Find callers of parse\"."
              },
              "prompt": {
                "type": "string",
                "description": "The task. The completed turns are known to it: say what to do, and what is new in this turn."
              }
            },
            "required": [
              "description",
              "prompt"
            ]
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "openWorldHint": true
          }
        }"#]],
    );
    // Where no registry is there is no background either.
    let bare = definition(ParentContext::Fresh, Background::NoRegistry, Vocabulary::Task);
    assert_eq!(bare, fresh);
}

#[tokio::test]
async fn sl1_every_call_may_run_beside_others() {
    let (rig, _) = Rig::with(Script::default());
    for args in [args(), background()] {
        let how = rig.tools.concurrency(rig.parent.agent(), "subagent", &args);
        assert_eq!(how, Concurrency::Parallel);
    }
}

#[tokio::test]
async fn a_card_shows_what_is_delegated() {
    let (rig, _) = Rig::with(Script::default());
    let tool = rig.tools.get("subagent").unwrap();
    let card = tool
        .present_call(&json!({ "description": "Count\n files", "prompt": "Count the files." }))
        .unwrap();
    let CallCard::Generic {
        title,
        kind,
        raw_input,
        content,
    } = card
    else {
        panic!("{card:?}");
    };
    assert_eq!((title.as_str(), kind), ("subagent: Count files", CardKind::Other));
    assert_eq!(raw_input, Some(json!("Count the files.")));
    assert_eq!(dsh_llm::text_of(&content), "Count the files.");
    assert_eq!(tool.present_call(&json!({ "prompt": 7 })), None);
}

#[tokio::test]
async fn tools_of_two_products_are_told_apart() {
    let said = |product| {
        let rig = Rig::new();
        let script = Script {
            product,
            ..Script::default()
        };
        rig.provide("p", script);
        rig.install(ToolSubagentConfig::new("p"));
        rig.tools.definitions().remove(0).description
    };
    let begins = [
        (
            Some("Codex"),
            "Hand a self-contained piece of work to Codex, a separate agent. ",
        ),
        (None, "Hand a self-contained piece of work to a separate agent. "),
    ];
    for (product, begins) in begins {
        let description = said(product);
        assert!(description.starts_with(begins), "{description}");
    }
}
