//! The configuration file: defaults, faults, schema.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use dsh_agent_core::{AgentCore, AssembleError, Config, ConfigError, Source};
use dsh_tasks::Vocabulary;
use expect_test::{Expect, expect};
use serde_json::Value;

struct File {
    path: PathBuf,
    _dir: tempfile::TempDir,
}

fn file(text: &str) -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    File { path, _dir: dir }
}

fn check_faults(text: &str, expected: Expect) {
    let file = file(text);
    let error = Config::from_file(&file.path).unwrap_err();
    expected.assert_eq(&error.to_string().replace(file.path.to_str().unwrap(), "FILE"));
}

#[test]
fn an_empty_file_is_the_defaults_and_they_are_valid() {
    let file = file("");
    assert_eq!(Config::from_file(&file.path).unwrap(), Config::default());
}

#[test]
fn every_fault_is_named_at_once() {
    check_faults(
        r#"
            vocabulary = "chore"
            colour = "red"

            [tasks]
            max_concurrent_tasks_per_owner = 0
            max_concurent = 3
            dispose_timeout_ms = "soon"

            [tool_tasks]
            enabled = 1
            wait_timeout_ms = 100
            max_wait_timeout_ms = 50

            [bash]
            timeout_ms = -5
            allow_env = ["HOME", 3]

            [tool_bash]
            leftover = "forget"
            stall_notice_ms = 0
        "#,
        expect![[r#"
            FILE: bash.allow_env: invalid type: integer `3`, expected a string
            FILE: colour: unknown key `colour`, expected one of `vocabulary`, `model`, `agent`, `approval`, `tasks`, `tool_tasks`, `bash`, `tool_bash`
            FILE: tasks.dispose_timeout_ms: invalid type: string "soon", expected a number
            FILE: tasks.max_concurent: unknown key `max_concurent`, expected one of `max_concurrent_tasks_per_owner`, `retained_unowned`, `dispose_timeout_ms`, `access`
            FILE: tool_bash.leftover: unknown value `forget`, expected one of `adopt`, `end`, `leave`
            FILE: tool_bash.stall_notice_ms: invalid value: integer `0`, expected a whole number above 0
            FILE: tool_tasks.enabled: invalid type: integer `1`, expected a boolean
            FILE: vocabulary: unknown value `chore`, expected `task` or `job`
            FILE: tasks.max_concurrent_tasks_per_owner: must be a whole number from 1 to 9007199254740991, is 0
            FILE: tool_tasks: tool-tasks: wait_timeout_ms (100) exceeds max_wait_timeout_ms (50)
            FILE: bash: bash-local: timeout_ms must be a positive finite number"#]],
    );
}

#[test]
fn faults_of_model_agent_and_approval_are_named_too() {
    check_faults(
        r#"
            [model]
            provider = "acme"
            temperature = -1
            max_tokens = 0
            api_key_env = " "
            choices = ["one", " "]
            idle_timeout_ms = 0
            api_key = "sk-1"

            [agent]
            max_parallel_tool_calls = 0
            tool_order = ["bash", "sh", "bash"]

            [approval]
            ask = ["bash", "job_kill"]

            [tool_tasks]
            completion_delivery = "loud"
            max_consecutive_wakes = -1
        "#,
        expect![[r#"
            FILE: model.api_key: unknown key `api_key`, expected one of `provider`, `name`, `choices`, `base_url`, `api_key_env`, `temperature`, `max_tokens`, `connect_timeout_ms`, `idle_timeout_ms`
            FILE: model.provider: unknown value `acme`, expected one of `deepseek`, `openai`, `compatible`, `scripted`
            FILE: tool_tasks.completion_delivery: unknown value `loud`, expected `wakeup` or `quiet`
            FILE: tool_tasks.max_consecutive_wakes: invalid value: integer `-1`, expected a whole number
            FILE: model.api_key_env: must not be empty: leave it out for the default
            FILE: model.choices: must name models, has an empty name
            FILE: model.temperature: must be a number, at least 0, is -1
            FILE: model.max_tokens: must be at least 1, is 0
            FILE: model.idle_timeout_ms: must be a number of milliseconds from 1 to 2147483647, is 0
            FILE: agent.max_parallel_tool_calls: must be at least 1, is 0
            FILE: agent.tool_order: the tool order lists "bash" twice"#]],
    );
}

#[test]
fn a_time_beyond_what_can_be_waited_for_is_refused_and_not_turned_into_another_one() {
    check_faults(
        "model = { connect_timeout_ms = 2147483648, idle_timeout_ms = 1e30 }\ntasks = { dispose_timeout_ms = inf }",
        expect![[r#"
            FILE: model.connect_timeout_ms: must be a number of milliseconds from 1 to 2147483647, is 2147483648
            FILE: model.idle_timeout_ms: must be a number of milliseconds from 1 to 2147483647, is 1000000000000000000000000000000
            FILE: tasks.dispose_timeout_ms: must be a number of milliseconds from 1 to 2147483647, is inf"#]],
    );
}

#[test]
fn a_limit_may_not_be_negative_a_fraction_or_beyond_what_json_can_say() {
    check_faults(
        "[tasks]\nmax_concurrent_tasks_per_owner = -1\nretained_unowned = 1.5",
        expect![[r#"
            FILE: tasks.max_concurrent_tasks_per_owner: invalid value: integer `-1`, expected a whole number
            FILE: tasks.retained_unowned: invalid type: number `1.5`, expected a whole number"#]],
    );
    check_faults(
        "[tasks]\nmax_concurrent_tasks_per_owner = 9007199254740992",
        expect![
            "FILE: tasks.max_concurrent_tasks_per_owner: must be a whole number from 1 to 9007199254740991, is 9007199254740992"
        ],
    );
}

#[test]
fn a_table_must_be_a_table() {
    check_faults(
        "tasks = 3\n[[bash]]\ntimeout_ms = 1",
        expect![[r#"
        FILE: bash: must be a table ([bash]), is a value of type array
        FILE: tasks: must be a table ([tasks]), is a value of type integer"#]],
    );
}

#[test]
fn a_table_that_nobody_knows_is_one_fault() {
    check_faults(
        "[colours]\na = 1\nb = 2",
        expect![
            "FILE: colours: unknown key `colours`, expected one of `vocabulary`, `model`, `agent`, `approval`, `tasks`, `tool_tasks`, `bash`, `tool_bash`"
        ],
    );
}

#[test]
fn broken_toml_is_shown_where_it_breaks() {
    check_faults(
        "[tasks]\nretained_unowned = = 3\n",
        expect![[r#"
        FILE: TOML parse error at line 2, column 20
              |
            2 | retained_unowned = = 3
              |                    ^
            extra `=`, expected nothing"#]],
    );
}

#[test]
fn a_named_file_must_exist() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none.toml");
    let error = Config::load(Some(&path)).unwrap_err();
    assert!(matches!(&error, ConfigError::Unreadable { path: named, .. } if *named == path));
    let expected = format!(
        "cannot read {}: No such file or directory (os error 2)",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_file_sets_what_it_names_and_says_where_it_is() {
    let file =
        file("vocabulary = \"job\"\n[tasks]\nmax_concurrent_tasks_per_owner = 1\n[bash]\ngrace_ms = 500");
    let (config, source) = Config::load(Some(&file.path)).unwrap();
    assert_eq!(source, Source::Named(file.path.clone()));
    assert_eq!(source.to_string(), file.path.display().to_string());
    assert_eq!(
        (config.vocabulary, config.tasks.max_concurrent_tasks_per_owner),
        (Vocabulary::Job, 1)
    );
    assert!(
        (config.bash.grace_ms - 500.0).abs() < f64::EPSILON,
        "a whole number is a number"
    );
}

#[test]
fn what_is_written_reads_back_as_itself() {
    let mut config = Config {
        vocabulary: Vocabulary::Job,
        ..Config::default()
    };
    config.tool_tasks.enabled = false;
    config.bash.cwd = Some("/srv".into());
    config.bash.allow_env = vec!["GITHUB_TOKEN".into()];
    config.tool_bash.stall_notice_ms = std::num::NonZeroU64::new(60_000);
    let written = config.to_toml().unwrap();
    assert_eq!(Config::from_file(&file(&written).path).unwrap(), config);
}

#[test]
fn what_no_file_can_say_is_an_error() {
    let mut config = Config::default();
    config.tool_bash.dsh_home = Some(OsStr::from_bytes(b"/srv/\xff").into());
    let refusal = config.to_toml().unwrap_err().to_string();
    assert!(
        refusal.starts_with("the configuration cannot be written as TOML: "),
        "{refusal}"
    );
}

#[test]
fn the_example_of_the_manual_is_a_configuration() {
    let manual = include_str!("../../src/lib.rs");
    let (_, example) = manual.split_once("//! ```toml\n").unwrap();
    let (example, _) = example.split_once("//! ```").unwrap();
    let example = example.replace("//! ", "").replace("//!", "");
    let read = Config::from_file(&file(&example).path).unwrap();
    assert_eq!(read.bash.allow_env, ["GITHUB_TOKEN"]);
}

#[test]
fn a_fault_does_not_repeat_a_megabyte_of_the_file() {
    let file = file(&format!("[bash]\n{} = 1", "x".repeat(1 << 20)));
    let faults = Config::from_file(&file.path).unwrap_err().to_string();
    assert!(faults.len() < 10_000, "{} bytes", faults.len());
}

#[test]
fn the_schema_describes_every_key_and_allows_no_other() {
    let schema = Config::schema();
    let written: toml::Table = Config::default().to_toml().unwrap().parse().unwrap();
    assert_eq!(schema["additionalProperties"], false);
    for (table, keys) in &written {
        let property = &schema["properties"][table];
        let described = match property["$ref"].as_str() {
            Some(reference) => schema.pointer(reference.trim_start_matches('#')).unwrap(),
            None => property,
        };
        assert!(property["description"].is_string(), "{table}: {property}");
        for key in keys.as_table().into_iter().flat_map(toml::Table::keys) {
            assert!(
                described["properties"][key]["description"].is_string(),
                "{table}.{key}: {described}"
            );
            assert_eq!(described["additionalProperties"], Value::Bool(false), "{table}");
        }
    }
}

#[tokio::test]
async fn values_set_by_a_program_are_checked_too() {
    let mut config = Config::default();
    config.tasks.max_concurrent_tasks_per_owner = 0;
    config.tool_tasks.wait_timeout_ms = f64::NAN;
    let Err(AssembleError::Config(error)) = AgentCore::assemble(config) else {
        panic!("assembled")
    };
    expect![[r#"
        configuration: tasks.max_concurrent_tasks_per_owner: must be a whole number from 1 to 9007199254740991, is 0
        configuration: tool_tasks: tool-tasks: wait_timeout_ms (NaN) must be a number of milliseconds, at least 1"#]]
    .assert_eq(&error.to_string());
}
