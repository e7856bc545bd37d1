//! What agents have of their presets, and for how long.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dsh_agent::{Agent, AgentSpec};
use dsh_agent_core::{AgentCore, Composition, Config, Parts, Presets, Profile, Provider, ServiceContext};
use dsh_agent_loop::LedAgent;
use dsh_llm::ModelRegistry;
use dsh_llm_scripted::ScriptedAdapter;
use dsh_session::{Session, SessionId};
use dsh_subagent::{Run, StartRequest};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const BASH: &str = "[[tools]]\nid = \"tool-bash\"\nname = \"bash\"\n";
const SPAWN: &str = "[[tools]]\nid = \"spawn\"\nname = \"subagent\"\nconfig = { provider = \"spawn\" }\n";

/// The services with a model that says `turns`, and agents of the preset `mine` in `home`.
fn core(home: &Path, turns: Value) -> AgentCore {
    let mut config = Config::default();
    config.model.provider = Provider::Scripted;
    config.model.name = Some("test".to_owned());
    let script = ScriptedAdapter::from_json("test", &json!({ "turns": turns }).to_string()).unwrap();
    let mut models = ModelRegistry::new();
    models.register("scripted", Arc::new(script)).unwrap();
    let parts = Parts {
        models,
        composition: Composition {
            profile: Profile::base(),
            presets: Presets::in_directory(Some(home.to_owned())),
            preset: "mine".to_owned(),
        },
        ..Parts::default()
    };
    AgentCore::assemble_with(config, parts).unwrap()
}

fn write(home: &Path, preset: &str) {
    fs::write(home.join("mine.toml"), preset).unwrap();
}

fn tools(context: &ServiceContext, agent: &Agent) -> Vec<String> {
    let tools = context.tools.definitions_for(agent).into_iter();
    tools
        .map(|tool| tool.name)
        .filter(|name| !name.starts_with("task_"))
        .collect()
}

async fn lead(context: &ServiceContext, id: &str) -> LedAgent {
    let session = Session::with_header(context.session_header(SessionId::new(id), None));
    context.lead(session, None).await.unwrap()
}

async fn child(context: &ServiceContext, parent: &Arc<Agent>) -> Run {
    let request = StartRequest::new("work", Arc::clone(parent), CancellationToken::new());
    context.subagents.start("spawn", request).await.unwrap()
}

#[tokio::test]
async fn an_edit_of_a_preset_is_for_later_agents_and_children_have_their_parents() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[BASH, SPAWN].concat());
    let core = core(home.path(), json!([{"text": "One."}, {"text": "Two."}]));
    let context = core.context();
    let early = lead(context, "early").await;
    assert_eq!(tools(context, early.agent()), ["bash", "subagent"]);
    assert_eq!(early.agent().session().header().preset.as_deref(), Some("mine"));

    write(home.path(), BASH);
    let late = lead(context, "late").await;
    assert_eq!(tools(context, late.agent()), ["bash"]);
    assert_eq!(tools(context, early.agent()), ["bash", "subagent"]);
    for (parent, expected) in [(&early, &["bash", "subagent"][..]), (&late, &["bash"])] {
        let run = child(context, parent.agent()).await;
        let agent = run.local_agent().unwrap();
        assert_eq!(tools(context, agent), expected);
        assert_eq!(agent.session().header().preset.as_deref(), Some("mine"));
        run.result().await.unwrap();
        run.dispose().await.unwrap();
    }

    write(home.path(), "tools = 1");
    let session = Session::with_header(context.session_header(SessionId::new("last"), None));
    let refused = context.lead(session, None).await.unwrap_err();
    let file = home.path().join("mine.toml");
    assert_eq!(
        refused.to_string(),
        format!(
            "cannot compose the agent: {}: tools: must be a list of rows ([[tools]]), is a value of type integer",
            file.display()
        )
    );
    assert_eq!(tools(context, early.agent()), ["bash", "subagent"]);
    core.shutdown().await;
}

#[tokio::test]
async fn a_preset_without_bash_keeps_its_agents_from_it_and_an_agent_led_from_outside_has_its_tools_too() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), SPAWN);
    let core = core(home.path(), json!([]));
    let context = core.context();
    let led = lead(context, "led").await;
    assert_eq!(tools(context, led.agent()), ["subagent"]);
    let outside = context
        .agents
        .create(AgentSpec {
            id: SessionId::new("outside"),
            cwd: None,
            within: context.scope.clone(),
        })
        .unwrap();
    assert_eq!(tools(context, outside.agent()), ["bash"]);
    context.compose(outside.agent()).unwrap();
    assert_eq!(tools(context, outside.agent()), ["subagent"]);
    core.shutdown().await;
}

#[tokio::test]
async fn without_a_model_nobody_in_this_process_is_delegated_to() {
    let core = AgentCore::assemble(Config::default()).unwrap();
    let context = core.context();
    assert_eq!(context.subagents.names(), Vec::<String>::new());
    let led = lead(context, "s").await;
    assert_eq!(tools(context, led.agent()), ["bash"]);
    core.shutdown().await;
}

#[test]
fn what_is_said_about_single_tools_is_about_tools_that_an_agent_can_have() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &SPAWN.replace("provider = \"spawn\"", "provider = \"x\", tool_name = \"ask_x\""),
    );
    let composition = Composition {
        presets: Presets::in_directory(Some(home.path().to_owned())),
        preset: "mine".to_owned(),
        ..Composition::default()
    };
    let mut config = Config::default();
    let known = ["bash", "task_kill", "subagent_fork", "subagent_codex", "ask_x"].map(ToOwned::to_owned);
    config.approval.ask = known.to_vec();
    config.agent.tool_order = ["ask_x", "<unlisted-tools>"].map(ToOwned::to_owned).to_vec();
    composition.check(&config).unwrap();

    config.approval.ask.push("sh".to_owned());
    config.agent.tool_order.push("job_list".to_owned());
    let there_is = "(there is: bash, task_output, task_list, task_kill, subagent, subagent_fork, subagent_codex, \
        subagent_claude_code, ask_x)";
    assert_eq!(
        composition.check(&config).unwrap_err().to_string(),
        format!(
            "configuration: agent.tool_order: no tool has the name \"job_list\" {there_is}\n\
             configuration: approval.ask: no tool has the name \"sh\" {there_is}"
        )
    );
}
