use dsh_llm::ContentBlock;
use dsh_session::{Message, MessageSource};
use serde_json::json;

use super::*;

/// What is known of the tasks of a log that holds these events: id, label, end, whether it was told.
fn known(data: &[EventData]) -> Vec<(String, String, Option<Outcome>, bool)> {
    let mut lineage = Lineage::default();
    for data in data {
        lineage.take(data);
    }
    let tasks = lineage.tasks.into_iter();
    tasks
        .map(|(id, Known { label, end, told })| (id, label, end, told))
        .collect()
}

fn call(tool: &str, arguments: Value, value: Value) -> [EventData; 2] {
    let call_id = CallId::new("call");
    [
        EventData::ToolCall {
            call_id: call_id.clone(),
            name: tool.to_owned(),
            arguments: arguments.to_string(),
        },
        EventData::ToolResult {
            call_id,
            content: Vec::new(),
            is_error: false,
            error: None,
            value: Some(value),
        },
    ]
}

fn started() -> [EventData; 2] {
    let value = json!({"kind": "background", "taskId": "bash-1"});
    call("bash", json!({"command": "make", "description": "Build"}), value)
}

fn notice(plugin: &str, text: &str) -> EventData {
    EventData::UserMessage(Message {
        content: vec![ContentBlock::text(text)],
        source: MessageSource::Plugin {
            plugin: plugin.to_owned(),
            form: "notice".to_owned(),
            summary: String::new(),
            subjects: vec!["bash-1".to_owned()],
        },
    })
}

fn bash_1(label: &str, end: Option<Outcome>, told: bool) -> Vec<(String, String, Option<Outcome>, bool)> {
    vec![("bash-1".to_owned(), label.to_owned(), end, told)]
}

#[test]
fn what_a_result_names_is_a_task() {
    assert_eq!(known(&started()), bash_1("make", None, false));
    let adopted = json!({"kind": "foreground", "exitCode": 0, "jobId": "bash-1"});
    assert_eq!(
        known(&call("bash", json!({"command": "x & y"}), adopted)),
        bash_1("x & y", None, false)
    );
    let ordinary = json!({"kind": "foreground", "exitCode": 0});
    assert_eq!(known(&call("bash", json!({"command": "y"}), ordinary)), []);
}

#[test]
fn a_notice_tells_the_end_and_what_it_was() {
    let text = "background task bash-1 (bash: make) finished [status: completed, exit code: 2]. Read its output with \
                task_output.\nlast output:\n> finished [status: killed]. Read its output with ";
    let log = [
        started().as_slice(),
        &[notice(dsh_tool_tasks::NOTICE_PLUGIN, text)],
    ]
    .concat();
    let end = Outcome::completed().detail("exit code: 2");
    assert_eq!(known(&log), bash_1("make", Some(end), true));
}

#[test]
fn news_that_is_no_end_tells_none() {
    let silence = notice(
        "tool-bash",
        "background task bash-1 (bash: make) has printed nothing for 9ms",
    );
    let log = [started().as_slice(), &[silence]].concat();
    assert_eq!(known(&log), bash_1("make", None, false));
}

#[test]
fn a_result_about_a_task_tells_its_end_and_a_list_does_not() {
    let row =
        |status: &str| json!({"id": "bash-1", "label": "make", "status": status, "detail": "exit code: 0"});
    let read = |status| call("task_output", json!({}), json!({"text": "", "task": row(status)}));
    let list = call("task_list", json!({}), json!([row("completed")]));
    let end = || Some(Outcome::completed().detail("exit code: 0"));
    assert_eq!(
        known(&[started(), read("running")].concat()),
        bash_1("make", None, false)
    );
    assert_eq!(
        known(&[started(), read("completed")].concat()),
        bash_1("make", end(), true)
    );
    assert_eq!(known(&[started(), list].concat()), bash_1("make", end(), false));
}

#[test]
fn who_asked_for_the_end_is_not_told_of_it() {
    let stopping = json!({"id": "bash-1", "label": "make", "status": "stopping"});
    let value = json!({"outcome": "cancellation-requested", "task": stopping});
    let killed = call("task_kill", json!({"task_id": "bash-1"}), value);
    assert_eq!(
        known(&[started(), killed].concat()),
        bash_1("make", Some(Outcome::killed()), true)
    );
}

#[test]
fn a_task_of_a_subagent_is_not_one_of_the_session() {
    let row = json!({"id": "bash-7", "label": "make", "subagent": "child", "status": "completed"});
    let read = json!({"text": "", "task": row.clone()});
    let mut log = call("task_list", json!({}), json!([row])).to_vec();
    log.extend(call("task_output", json!({"task_id": "bash-7"}), read));
    assert_eq!(known(&log), []);
}
