//! The tasks of a subagent, for the agent that it works for.

use dsh_agent::AgentHandle;
use dsh_session::{Session, SessionHeader, SessionId};
use dsh_tasks::Outcome;
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{Harness, Spec, texts, told};

fn child(harness: &Harness, parent: &AgentHandle) -> AgentHandle {
    let header = SessionHeader {
        parent_session: Some(parent.agent().id().clone()),
        delegation_depth: 1,
        ..SessionHeader::new(SessionId::new("child-1"), None)
    };
    harness
        .agents
        .create_with(Session::with_header(header), harness.scope.clone())
        .expect("the agent is created")
}

#[tokio::test]
async fn a_list_shows_the_tasks_of_subagents_and_marks_them() {
    let harness = Harness::new();
    let parent = harness.agent("parent");
    let child = child(&harness, &parent);
    let stranger = harness.agent("stranger");
    let _own = Spec::owned_by(parent.agent()).start(&harness);
    let _childs = Spec::owned_by(child.agent()).start(&harness);
    let list = harness.call("task_list", json!({}), Some(parent.agent())).await;
    expect![[r#"
        bash-1 [bash] running — pnpm test
        bash-2 [bash] running — pnpm test (subagent child-1)"#]]
    .assert_eq(&list);
    let list = harness.call("task_list", json!({}), Some(child.agent())).await;
    expect!["bash-2 [bash] running — pnpm test"].assert_eq(&list);
    let list = harness.call("task_list", json!({}), Some(stranger.agent())).await;
    expect!["(no background tasks)"].assert_eq(&list);
    // Programs can tell them apart, too: a session's own tasks are those that nobody else is named for.
    let rows = harness
        .execute("task_list", json!({}), Some(parent.agent()))
        .await;
    let whose = |row: &Value| row["subagent"].as_str().map(str::to_owned);
    let whose: Vec<_> = rows
        .value
        .expect("rows")
        .as_array()
        .expect("a list")
        .iter()
        .map(whose)
        .collect();
    assert_eq!(whose, [None, Some("child-1".to_owned())]);
}

#[tokio::test]
async fn what_the_parent_reads_and_kills_is_told_to_the_child_all_the_same() {
    let harness = Harness::new();
    let parent = harness.agent("parent");
    let child = child(&harness, &parent);
    let task = Spec::owned_by(child.agent()).start(&harness);
    task.print("41 passed\n");
    let (id, above) = (task.id.clone(), Some(parent.agent()));
    assert_eq!(harness.read(&id, above).await, "41 passed\n[status: running]");
    let kill = json!({ "task_id": "bash-1", "reason": "enough" });
    assert_eq!(
        harness.call("task_kill", kill, above).await,
        "requested cancellation of task bash-1"
    );
    assert_eq!(task.reasons(), [Some("enough".to_owned())]);
    task.settle(Outcome::killed().detail("signal: SIGTERM"));
    harness.announced(1).await;
    // The notice waits in the child's inbox, and stays there whatever the parent reads.
    assert_eq!(
        harness.read(&id, above).await,
        "41 passed\n[status: killed, signal: SIGTERM; killed by parent agent]"
    );
    assert!(told(parent.agent()).is_empty());
    expect![[r#"
        [
            "background task bash-1 (bash: pnpm test) finished [status: killed, signal: SIGTERM; killed by parent agent]. Read its output with task_output.\nlast output:\n> 41 passed",
        ]
    "#]]
    .assert_debug_eq(&texts(&told(child.agent())));
    assert_eq!(
        harness.read(&id, Some(child.agent())).await,
        "41 passed\n[status: killed, signal: SIGTERM; killed by parent agent]",
        "none of it was taken"
    );
    let stranger = harness.agent("stranger");
    assert_eq!(
        harness.read(&id, Some(stranger.agent())).await,
        "Error: task bash-1 belongs to another session"
    );
}
