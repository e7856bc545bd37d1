//! Bash and the task tools together, through the real pipeline and real processes, in this process.

use dsh_agent_core::Config;
use dsh_session::MessageSource;
use dsh_testkit::eventually;
use dsh_testkit::process::{gone, read_pid};
use serde_json::{Value, json};
use tests::{Harness, Room, delivered};
use tokio_util::sync::CancellationToken;

fn harness() -> (Room, Harness) {
    harness_with(Config::default())
}

fn harness_with(config: Config) -> (Room, Harness) {
    let room = Room::new();
    let harness = Harness::new(config, room.work());
    (room, harness)
}

#[tokio::test]
async fn c92_a_background_command_is_acknowledged_and_read() {
    let (_room, harness) = harness();
    assert_eq!(
        harness.background("echo bg-ok").await.ok(),
        "started background task bash-1"
    );
    assert_eq!(
        harness.wait("bash-1").await.ok(),
        "bg-ok\n[status: completed, exit code: 0]"
    );
    harness.close().await;
}

#[tokio::test]
async fn c93_a_running_task_is_stopped_through_the_kill_tool() {
    let (room, harness) = harness();
    harness.background("echo $$ > pid; exec sleep 60").await;
    let pid = room.pid("pid").await;
    let killed = harness.call("task_kill", json!({"task_id": "bash-1"})).await;
    assert_eq!(killed.ok(), "requested cancellation of task bash-1");
    assert_eq!(
        harness.wait("bash-1").await.ok(),
        "(no new output)\n[status: killed, signal: SIGTERM]"
    );
    gone(pid).await;
    harness.close().await;
}

#[tokio::test]
async fn c94_a_command_that_ends_itself_by_signal_reads_killed() {
    let (_room, harness) = harness();
    harness.background("kill -TERM $$").await;
    assert_eq!(
        harness.wait("bash-1").await.ok(),
        "(no new output)\n[status: killed, signal: SIGTERM]"
    );
    harness.close().await;
}

#[tokio::test]
async fn c95_a_task_belongs_to_the_agent_that_started_it() {
    let (_room, harness) = harness();
    harness.background("exec sleep 60").await;
    let other = harness.another("session-2");
    for caller in [None, Some(other.agent())] {
        for tool in ["task_output", "task_kill"] {
            let result = harness
                .execute(
                    caller,
                    tool,
                    json!({"task_id": "bash-1"}),
                    CancellationToken::new(),
                )
                .await;
            assert_eq!(
                delivered(result).error(),
                "Error: task bash-1 belongs to another session"
            );
        }
        let result = harness
            .execute(caller, "task_list", json!({}), CancellationToken::new())
            .await;
        assert_eq!(delivered(result).ok(), "(no background tasks)");
    }
    assert!(
        !harness
            .call("task_kill", json!({"task_id": "bash-1"}))
            .await
            .is_error
    );
    assert!(
        harness
            .wait("bash-1")
            .await
            .ok()
            .ends_with("[status: killed, signal: SIGTERM]")
    );
    other.dispose().await.expect("the agent goes");
    harness.close().await;
}

#[tokio::test]
async fn c97_a_call_that_was_given_up_before_starts_nothing() {
    let (room, harness) = harness();
    for background in [true, false] {
        let token = CancellationToken::new();
        token.cancel();
        let arguments = json!({"command": "touch ran", "description": "d", "run_in_background": background});
        let result = harness
            .execute(Some(harness.agent.agent()), "bash", arguments, token)
            .await;
        assert_eq!(
            result.error.as_ref().map(|error| error.code),
            Some("TOOL_ABORTED_BEFORE_DISPATCH")
        );
        assert_eq!(
            delivered(result).error(),
            "Error: tool call aborted before dispatch"
        );
    }
    assert_eq!(
        harness.call("task_list", json!({})).await.ok(),
        "(no background tasks)"
    );
    assert!(!room.file("ran").exists());
    harness.close().await;
}

#[tokio::test]
async fn c98_without_control_tools_a_background_start_is_refused_and_nothing_runs() {
    let mut config = Config::default();
    config.tool_tasks.enabled = false;
    let (room, harness) = harness_with(config);
    let refused = harness.background("touch ran").await;
    assert_eq!(
        refused.error(),
        "Error: run_in_background is disabled for this deployment (tool_tasks.enabled: false)"
    );
    assert_eq!(harness.bash("echo still").await.ok(), "still\n");
    harness.close().await;
    assert!(!room.file("ran").exists());
}

#[tokio::test]
async fn c99_disabled_background_is_gone_from_the_schema_and_refused_when_forced() {
    let mut config = Config::default();
    config.tool_bash.enable_run_in_background = false;
    let (room, harness) = harness_with(config);
    let definitions = harness.core.context().tools.definitions();
    let bash = definitions
        .iter()
        .find(|tool| tool.name == "bash")
        .expect("bash is there");
    let properties = bash.input_schema["properties"].as_object().expect("properties");
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    assert_eq!(names, ["command", "description", "timeoutMs", "workdir"]);
    assert!(
        bash.description.contains("Background execution is not available"),
        "{}",
        bash.description
    );
    assert!(!bash.description.contains("run_in_background"));
    let forced = harness.background("touch ran").await;
    assert!(
        forced
            .error()
            .contains("run_in_background is disabled for this deployment"),
        "{forced:?}"
    );
    assert_eq!(harness.bash("echo foreground").await.ok(), "foreground\n");
    harness.close().await;
    assert!(!room.file("ran").exists());
}

#[tokio::test]
async fn c156_a_command_sees_the_facts_of_its_session_and_no_stale_ones() {
    let (_room, harness) = harness();
    let reply = harness
        .bash("echo $DSH_SHELL $DSH_SESSION_ID; env | grep -c '^DSH_TEST_' || true")
        .await;
    assert_eq!(
        reply.ok(),
        "1 session-1\n0\n",
        "variables of this very test run are DSH_ ones, too"
    );
    harness.close().await;
}

#[tokio::test]
async fn c157_a_foreground_command_is_one_text_block() {
    let (_room, harness) = harness();
    let reply = harness.bash("echo integration-ok").await;
    assert_eq!(reply.texts, ["integration-ok\n"]);
    assert!(!reply.is_error);
    harness.close().await;
}

#[tokio::test]
async fn c158_a_non_zero_exit_is_no_error() {
    let (_room, harness) = harness();
    assert_eq!(harness.bash("exit 9").await.ok(), "(no output)\n[exit code: 9]");
    harness.close().await;
}

#[tokio::test]
async fn c159_the_end_is_announced_to_the_owner_and_collected_later() {
    let (_room, harness) = harness();
    harness.background("echo bg-ok").await;
    let inbox = harness.agent.agent().inbox();
    inbox.arrived().await;
    let lease = inbox.lease();
    let [notice] = lease.messages() else {
        panic!("one notice: {:?}", lease.messages())
    };
    let text = dsh_llm::text_of(&notice.content);
    assert!(
        text.starts_with(
            "background task bash-1 (bash: echo bg-ok) finished [status: completed, exit code: 0]"
        ),
        "{text}"
    );
    let MessageSource::Plugin { plugin, form, .. } = &notice.source else {
        panic!("{:?}", notice.source)
    };
    assert_eq!((plugin.as_str(), form.as_str()), ("tool-tasks", "notice"));
    lease.commit();
    assert_eq!(
        harness.wait("bash-1").await.ok(),
        "bg-ok\n[status: completed, exit code: 0]"
    );
    assert_eq!(inbox.pending(), 0);
    harness.close().await;
}

#[tokio::test]
async fn a16_a_refused_preflight_spawns_nothing_and_burns_no_id() {
    let (_room, harness) = harness();
    let arguments = json!({"command": "true", "description": "d", "run_in_background": true, "workdir": "/no/such/place"});
    assert!(
        harness
            .call("bash", arguments)
            .await
            .error()
            .contains("/no/such/place")
    );
    assert_eq!(
        harness.background("true").await.ok(),
        "started background task bash-1"
    );
    harness.close().await;
}

#[tokio::test]
async fn a_read_that_never_reached_the_model_is_read_again() {
    let (_room, harness) = harness();
    harness.background("echo once").await;
    let arguments = json!({"task_id": "bash-1", "wait": true});
    let dropped = harness
        .execute(
            Some(harness.agent.agent()),
            "task_output",
            arguments,
            CancellationToken::new(),
        )
        .await;
    assert_eq!(
        dropped.single_text(),
        Some("once\n[status: completed, exit code: 0]")
    );
    drop(dropped);
    // The end was not told, so it is owed; and the output is still there.
    harness.agent.agent().inbox().arrived().await;
    assert_eq!(
        harness.wait("bash-1").await.ok(),
        "once\n[status: completed, exit code: 0]"
    );
    assert_eq!(
        harness.agent.agent().inbox().pending(),
        0,
        "delivering the end takes back the waiting notice"
    );
    harness.close().await;
}

#[tokio::test]
async fn an_abort_after_the_end_loses_neither_the_end_nor_the_output() {
    let (_room, harness) = harness();
    for round in 1..=20 {
        let id = format!("bash-{round}");
        harness.background("echo out").await;
        let token = CancellationToken::new();
        let arguments = json!({"task_id": id, "wait": true});
        let wait = harness.execute(
            Some(harness.agent.agent()),
            "task_output",
            arguments,
            token.clone(),
        );
        let abort = async {
            eventually("the task ended", || ended(&harness, &id)).await;
            token.cancel();
        };
        let (result, ()) = tokio::join!(wait, abort);
        let told = !result.is_error;
        drop(delivered(result));
        let inbox = harness.agent.agent().inbox();
        if told {
            assert_eq!(inbox.pending(), 0, "round {round}: told by the result alone");
        } else {
            inbox.arrived().await;
            assert_eq!(inbox.pending(), 1, "round {round}: told by the notice alone");
            assert_eq!(
                harness.wait(&id).await.ok(),
                "out\n[status: completed, exit code: 0]"
            );
        }
    }
    harness.close().await;
}

fn ended(harness: &Harness, id: &str) -> bool {
    let tasks = harness.core.context().tasks.list(Some(harness.agent.agent()));
    tasks
        .iter()
        .any(|task| task.id.to_string() == id && task.finished_at.is_some())
}

#[tokio::test]
async fn disposing_an_agent_ends_its_tasks_and_nobody_elses() {
    let (room, harness) = harness();
    let other = harness.another("session-2");
    harness.background("echo $$ > mine; exec sleep 60").await;
    let theirs = room.file("theirs");
    let command = format!("echo $$ > '{}'; exec sleep 60", theirs.display());
    let arguments = json!({"command": command, "description": "d", "run_in_background": true});
    let started = harness
        .execute(Some(other.agent()), "bash", arguments, CancellationToken::new())
        .await;
    assert_eq!(
        delivered(started).ok(),
        "started background task bash-2",
        "one counter for all"
    );
    let (mine, theirs) = (room.pid("mine").await, room.pid("theirs").await);
    other.dispose().await.expect("the agent goes");
    assert!(
        dsh_testkit::process::is_gone(theirs),
        "dispose returns when it is gone"
    );
    assert!(!dsh_testkit::process::is_gone(mine));
    harness.close().await;
    assert!(dsh_testkit::process::is_gone(mine));
}

#[tokio::test]
async fn a_foreground_command_that_is_aborted_ends_with_its_group_before_the_call_returns() {
    let (room, harness) = harness();
    let token = CancellationToken::new();
    let arguments = json!({"command": "sleep 60 & echo $! > child; wait", "description": "d"});
    let call = harness.execute(Some(harness.agent.agent()), "bash", arguments, token.clone());
    let abort = async {
        let child = room.pid("child").await;
        token.cancel();
        child
    };
    let (result, child) = tokio::join!(call, abort);
    assert!(dsh_testkit::process::is_gone(child));
    assert_eq!(
        result.error.as_ref().map(|error| error.code),
        Some("TOOL_ABORTED")
    );
    assert_eq!(delivered(result).error(), "Error: tool call aborted");
    harness.close().await;
}

#[tokio::test]
async fn what_a_command_leaves_is_ended_where_so_configured() {
    let mut config = Config::default();
    config.tool_bash.leftover = Some(serde_json::from_value(Value::from("end")).expect("a setting"));
    let (room, harness) = harness_with(config);
    let reply = harness
        .bash("sleep 60 >/dev/null 2>&1 & echo $! > child; echo done")
        .await;
    let child = read_pid(&room.file("child")).expect("written before the shell ended");
    assert!(dsh_testkit::process::is_gone(child), "ended before the result");
    assert!(reply.ok().starts_with("done\n"), "{reply:?}");
    assert_eq!(
        harness.call("task_list", json!({})).await.ok(),
        "(no background tasks)"
    );
    harness.close().await;
}

#[tokio::test]
async fn the_prompt_tells_of_bash_before_the_tasks() {
    let (_room, harness) = harness();
    let prompt = harness.core.context().prompts.assemble().expect("a prompt");
    let bash = prompt.find("[exit code: N]").expect("the bash section");
    let tasks = prompt.find("task_output").expect("the task section");
    assert!(bash < tasks, "{prompt}");
    harness.close().await;
}
