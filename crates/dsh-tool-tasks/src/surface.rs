//! Everything a model sees of background tasks, as a document.

use dsh_session::SessionId;
use dsh_tasks::{AccessError, Kind, TaskId, TaskSnapshot, TaskStatus, Vocabulary};
use dsh_tools::ToolDefinition;

use crate::output::NO_NEW_OUTPUT;
use crate::{bounds, list, notice};

/// Renders what a model sees as Markdown: the tools given, the assembled guidance, and every form of reply, notice
/// and refusal that the task tools have. All sentences come from the code that makes them for a model.
pub fn model_surface(tools: &[ToolDefinition], guidance: &str, vocabulary: Vocabulary) -> String {
    let mut page = String::from("# What a model sees\n\nGenerated; do not edit.\n\n## Tools\n");
    for tool in tools {
        let schema = serde_json::to_string_pretty(&tool.input_schema).unwrap_or_default();
        page.push_str(&format!(
            "\n### `{}`\n\n{}\n\n```json\n{schema}\n```\n",
            tool.name, tool.description
        ));
    }
    page.push_str(&format!("\n## Guidance\n\n```text\n{guidance}\n```\n"));
    for (title, examples) in Kind::new("bash")
        .into_iter()
        .flat_map(|kind| sections(vocabulary, &sample(kind)))
    {
        page.push_str(&format!("\n## {title}\n"));
        for (when, text) in examples {
            page.push_str(&format!("\n{when}:\n\n```text\n{text}\n```\n"));
        }
    }
    page
}

type Examples = Vec<(&'static str, String)>;

fn sections(vocabulary: Vocabulary, running: &TaskSnapshot) -> [(&'static str, Examples); 5] {
    let done = &ended(running, TaskStatus::Completed, "exit code: 0");
    [
        ("Status lines", status_lines(running)),
        ("Replies", replies(vocabulary, running, done)),
        ("Lists", lists(vocabulary, running, done)),
        ("Notices", notices(vocabulary, running, done)),
        ("Refusals", refusals(vocabulary)),
    ]
}

fn status_lines(running: &TaskSnapshot) -> Examples {
    use TaskStatus::{Completed, Failed, Killed, Stopping};
    let detail = Some("shell exited with code 0, 2 processes running".to_owned());
    let shell_exited = TaskSnapshot {
        live_detail: detail,
        ..running.clone()
    };
    let stopping = TaskSnapshot {
        status: Stopping,
        ..running.clone()
    };
    let ended = |status, detail| ended(running, status, detail);
    [
        ("Running", running.clone()),
        (
            "Its shell has ended, what the shell started has not",
            shell_exited,
        ),
        ("Asked to end, not ended yet", stopping),
        ("Ended by itself", ended(Completed, "exit code: 3")),
        ("Killed on request", ended(Killed, "signal: SIGTERM")),
        (
            "Ran into its own deadline",
            ended(Killed, "signal: SIGTERM; timed out after 700ms"),
        ),
        (
            "Left something alive",
            ended(Killed, "signal: SIGKILL; 1 process survived: 4242 sleep"),
        ),
        (
            "Its machinery broke",
            ended(Failed, "the error, as its producer words it"),
        ),
    ]
    .map(|(when, snapshot)| (when, snapshot.status_line()))
    .into()
}

fn replies(vocabulary: Vocabulary, running: &TaskSnapshot, done: &TaskSnapshot) -> Examples {
    let line = running.status_line();
    vec![
        ("Started", vocabulary.started(&running.id)),
        ("Read, with new output", bounds::read("compiling\n", &line, None)),
        ("Read, nothing new", bounds::read(NO_NEW_OUTPUT, &line, None)),
        (
            "Read, more than the producer allows in one reply",
            bounds::read(&"x".repeat(80), &line, Some(64)),
        ),
        ("Kill", vocabulary.kill_requested(&running.id)),
        ("Kill, too late", vocabulary.already_finished(done)),
    ]
}

fn lists(vocabulary: Vocabulary, running: &TaskSnapshot, done: &TaskSnapshot) -> Examples {
    let second = TaskSnapshot {
        id: TaskId::new("bash-2"),
        ..done.clone()
    };
    let rows = format!("{}\n{}", running.list_line(), second.list_line());
    let third = TaskSnapshot {
        id: TaskId::new("bash-3"),
        owner: Some(SessionId::new("4f8f6c1e")),
        ..running.clone()
    };
    let older = format!("{rows}\n{}", vocabulary.older_ended_not_shown(37));
    vec![
        ("Some", rows),
        ("More ended than a list shows", older),
        ("Of an agent that works for this one", list::row(&third, None)),
        ("None", vocabulary.empty_list()),
    ]
}

fn notices(vocabulary: Vocabulary, running: &TaskSnapshot, done: &TaskSnapshot) -> Examples {
    let bounded = TaskSnapshot {
        output_limit_bytes: Some(100),
        ..done.clone()
    };
    vec![
        ("Without output", notice::text(vocabulary, done, "")),
        (
            "With output",
            notice::text(vocabulary, done, "41 passed\n1 failed"),
        ),
        (
            "More than the producer allows in one notice",
            notice::text(vocabulary, &bounded, "41 passed"),
        ),
        (
            "Of a silence, where a deployment wants to be told of one",
            vocabulary.silence(running, 60_000, "41 passed"),
        ),
    ]
}

fn refusals(vocabulary: Vocabulary) -> Examples {
    let (id, known) = (
        TaskId::new("bash-99"),
        vec![TaskId::new("bash-1"), TaskId::new("bash-2")],
    );
    [
        (
            "No such id",
            AccessError::Unknown {
                vocabulary,
                id: id.clone(),
                known,
            }
            .to_string(),
        ),
        (
            "Ended long ago",
            AccessError::Expired {
                vocabulary,
                id: id.clone(),
            }
            .to_string(),
        ),
        (
            "Somebody else's",
            AccessError::Foreign { vocabulary, id }.to_string(),
        ),
        ("No id", vocabulary.empty_id()),
        ("Nobody could control it", vocabulary.no_surface().to_owned()),
    ]
    .map(|(when, text)| (when, format!("Error: {text}")))
    .into()
}

fn ended(running: &TaskSnapshot, status: TaskStatus, detail: &str) -> TaskSnapshot {
    TaskSnapshot {
        status,
        detail: Some(detail.to_owned()),
        finished_at: Some(0),
        ..running.clone()
    }
}

fn sample(kind: Kind) -> TaskSnapshot {
    TaskSnapshot {
        id: TaskId::new(format!("{kind}-1")),
        kind,
        label: "cargo test".into(),
        output_limit_bytes: None,
        owner: None,
        status: TaskStatus::Running,
        detail: None,
        live_detail: None,
        cause: None,
        reason: None,
        survivors: Vec::new(),
        started_at: 0,
        finished_at: None,
        reported: false,
        bytes: 0,
    }
}
