//! What is there after assembly, what a configuration changes, and what is left after shutdown.

use std::sync::Arc;

use dsh_agent::{Agent, AgentHandle, AgentSpec};
use dsh_agent_core::{AgentCore, Config};
use dsh_llm::CallId;
use dsh_session::SessionId;
use dsh_tasks::Vocabulary;
use dsh_testkit::{eventually, process};
use dsh_tools::ToolContext;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn agent(core: &AgentCore) -> AgentHandle {
    let context = core.context();
    let spec = AgentSpec {
        id: SessionId::new("a"),
        cwd: None,
        within: context.scope.clone(),
    };
    context.agents.create(spec).unwrap()
}

async fn call(core: &AgentCore, agent: &Arc<Agent>, tool: &str, args: Value) -> String {
    let ctx = ToolContext {
        caller: Some(Arc::clone(agent)),
        token: Default::default(),
        call_id: CallId::new("call"),
    };
    let result = core.context().tools.execute(tool, args, ctx).await;
    let text = result.single_text().unwrap().to_owned();
    result.deliveries.deliver_all();
    text
}

fn background(command: &str) -> Value {
    json!({"command": command, "description": "test", "run_in_background": true})
}

fn tool_names(core: &AgentCore) -> Vec<String> {
    core.context()
        .tools
        .definitions()
        .into_iter()
        .map(|definition| definition.name)
        .collect()
}

#[tokio::test]
async fn everything_is_there_and_nothing_is_after_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let core = AgentCore::assemble(Config::default()).unwrap();
    assert_eq!(
        tool_names(&core),
        ["bash", "task_kill", "task_list", "task_output"]
    );
    let prompt = core.context().prompts.assemble().unwrap();
    assert!(prompt.contains("task_output"), "{prompt}");

    let handle = agent(&core);
    let command = format!("echo $$ > {}; sleep 600", file.display());
    assert_eq!(
        call(&core, handle.agent(), "bash", background(&command)).await,
        "started background task bash-1"
    );
    eventually("the command to tell its pid", || {
        process::read_pid(&file).is_some()
    })
    .await;
    let pid = process::read_pid(&file).unwrap();

    tokio::join!(core.shutdown(), core.shutdown());
    assert!(process::is_gone(pid));
    assert!(tool_names(&core).is_empty());
    assert_eq!(core.context().prompts.assemble().unwrap(), "");
    assert!(!core.context().agents.is_registered(handle.agent()));
    core.shutdown().await;
}

/// The executor would end the process without saying why: the registry has to come first.
#[tokio::test]
async fn an_unowned_command_ends_with_the_registry_before_its_executor_goes() {
    let core = AgentCore::assemble(Config::default()).unwrap();
    let tasks = core.context().tasks.clone();
    let ctx = ToolContext {
        caller: None,
        token: Default::default(),
        call_id: CallId::new("call"),
    };
    let result = core
        .context()
        .tools
        .execute("bash", background("sleep 600"), ctx)
        .await;
    assert_eq!(result.single_text(), Some("started background task bash-1"));
    let (task, never) = ("bash-1".into(), CancellationToken::new());
    let (ended, ()) = tokio::join!(biased; tasks.wait(&task, None, 60_000.0, &never), core.shutdown());
    assert_eq!(
        ended.unwrap().snapshot.status_line(),
        "[status: killed, signal: SIGTERM; tasks service disposed]"
    );
}

#[tokio::test]
async fn without_the_task_tools_nothing_is_offered_in_the_background_and_the_setting_is_named() {
    let mut config = Config::default();
    config.tool_tasks.enabled = false;
    let core = AgentCore::assemble(config).unwrap();
    assert_eq!(tool_names(&core), ["bash"]);
    let definition = core.context().tools.definitions().remove(0);
    assert!(definition.input_schema["properties"]["run_in_background"].is_null());
    assert!(
        definition
            .description
            .ends_with("Background execution is not available. What a command leaves running is ended."),
        "{}",
        definition.description
    );
    let handle = agent(&core);
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let refused = call(
        &core,
        handle.agent(),
        "bash",
        background(&format!("touch {}", trace.display())),
    )
    .await;
    let text = "Error: run_in_background is disabled for this deployment (tool_tasks.enabled: false)";
    assert_eq!(refused, text);
    let run = call(
        &core,
        handle.agent(),
        "bash",
        json!({"command": "sleep 600 & echo hi", "description": "say hi"}),
    )
    .await;
    assert_eq!(run, "hi\n[1 process left running, now ended]");
    assert!(!trace.exists());
    core.shutdown().await;
}

#[tokio::test]
async fn a_silent_task_is_told_to_its_owner_where_that_is_configured() {
    let mut config = Config::default();
    config.tool_bash.stall_notice_ms = std::num::NonZeroU64::new(100);
    let core = AgentCore::assemble(config).unwrap();
    let handle = agent(&core);
    call(
        &core,
        handle.agent(),
        "bash",
        background("echo up; exec sleep 600"),
    )
    .await;
    handle.agent().inbox().arrived().await;
    let lease = handle.agent().inbox().lease();
    let told = dsh_llm::text_of(&lease.messages()[0].content);
    assert!(
        told.starts_with(
            "background task bash-1 (bash: echo up; exec sleep 600) has printed nothing for 100ms "
        ),
        "{told}"
    );
    lease.commit();
    core.shutdown().await;
}

#[tokio::test]
async fn a1_a_limit_of_one_is_applied() {
    let mut config = Config {
        vocabulary: Vocabulary::Job,
        ..Config::default()
    };
    config.tasks.max_concurrent_tasks_per_owner = 1;
    let core = AgentCore::assemble(config).unwrap();
    assert_eq!(tool_names(&core), ["bash", "job_kill", "job_list", "job_output"]);
    let handle = agent(&core);
    assert_eq!(
        call(&core, handle.agent(), "bash", background("sleep 600")).await,
        "started background job bash-1"
    );
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let refused = call(
        &core,
        handle.agent(),
        "bash",
        background(&format!("touch {}", trace.display())),
    )
    .await;
    let text = "Error: background job limit reached for this owner (limit: 1); use job_kill to stop an unneeded \
                job, wait for it to finish, then retry (running: bash-1 for ";
    assert!(refused.starts_with(text), "{refused}");
    core.shutdown().await;
    assert!(!trace.exists());
}

#[tokio::test]
async fn an_executor_in_a_hurry_takes_the_grace_away() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let mut config = Config::default();
    config.bash.grace_ms = 600_000.0;
    let core = AgentCore::assemble(config).unwrap();
    let handle = agent(&core);
    let command = format!(
        "trap '' TERM; echo $$ > {}; while :; do sleep 1; done",
        file.display()
    );
    call(&core, handle.agent(), "bash", background(&command)).await;
    eventually("the command to tell its pid", || {
        process::read_pid(&file).is_some()
    })
    .await;
    core.hurry();
    core.shutdown().await;
    assert!(process::is_gone(process::read_pid(&file).unwrap()));
}
