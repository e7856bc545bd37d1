//! What agents have of their presets, and for how long.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dsh_agent::{Agent, AgentSpec};
use dsh_agent_core::{AgentCore, Composition, Config, Parts, Presets, Profile, Provider, ServiceContext};
use dsh_agent_loop::LedAgent;
use dsh_llm::{ContentBlock, ModelRegistry};
use dsh_llm_scripted::ScriptedAdapter;
use dsh_session::{EventData, Message, MessageSource, Session, SessionId, TurnEnd};
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

#[test]
fn a_filter_names_tools_that_there_are() {
    let home = tempfile::tempdir().unwrap();
    let filter = |names: &str| {
        let row = format!("provider = \"spawn\", tool_filter = {{ {names} }}");
        write(home.path(), &SPAWN.replace("provider = \"spawn\"", &row));
    };
    let composition = Composition {
        presets: Presets::in_directory(Some(home.path().to_owned())),
        preset: "mine".to_owned(),
        ..Composition::default()
    };
    let mut config = Config::default();
    filter("allow = [\"bash\", \"subagent\"], deny = [\"task_list\"]");
    composition.check(&config).unwrap();
    // Everything at once: both lists, and the configuration.
    filter("allow = [\"bash\", \"bsah\"], deny = [\"task_lits\"]");
    config.approval.ask = ["sh".to_owned()].into();
    let told = composition.check(&config).unwrap_err().to_string();
    let file = home.path().join("mine.toml").display().to_string();
    let known = "(there is: bash, task_output, task_list, task_kill, subagent)";
    let expected = [
        format!("{file}: tools.spawn.config.tool_filter.allow: no tool has the name \"bsah\" {known}"),
        format!("{file}: tools.spawn.config.tool_filter.deny: no tool has the name \"task_lits\" {known}"),
    ];
    let (preset, configuration) = told.split_at(told.find("\nconfiguration: ").unwrap());
    assert_eq!(preset, expected.join("\n"));
    assert!(
        configuration.contains("no tool has the name \"sh\""),
        "{configuration}"
    );
    // Without the control tools there is none to be kept from.
    filter("deny = [\"task_list\"]");
    let mut config = Config::default();
    config.tool_tasks.enabled = false;
    let told = composition.check(&config).unwrap_err().to_string();
    assert!(
        told.ends_with("no tool has the name \"task_list\" (there is: bash, subagent)"),
        "{told}"
    );
}

#[tokio::test]
async fn a_filter_may_name_tools_whose_rows_are_off_or_whose_providers_are_not_mounted() {
    let home = tempfile::tempdir().unwrap();
    let row = |id: &str, more: &str| {
        format!(
            "[[tools]]\nid = \"{id}\"\nname = \"subagent\"\n{more}config = {{ provider = \"{id}\", tool_name = \"{id}\" }}\n"
        )
    };
    let filter = "provider = \"spawn\", tool_filter = { deny = [\"absent\", \"off\", \"bash\"] }";
    let spawn = SPAWN.replace("provider = \"spawn\"", filter);
    write(
        home.path(),
        &[BASH, &spawn, &row("absent", ""), &row("off", "disabled = true\n")].concat(),
    );
    let arguments = json!({"description": "d", "prompt": "work"});
    let core = core(
        home.path(),
        json!([
            {"tool_calls": [{"name": "subagent", "arguments": arguments}]},
            {"tool_calls": [{"name": "bash", "arguments": {"command": "true", "description": "d"}}]},
            {"expect": ["unknown tool"], "text": "No bash here."},
            {"expect": ["No bash here."], "text": "Done."},
        ]),
    );
    let context = core.context();
    let led = lead(context, "s").await;
    assert_eq!(tools(context, led.agent()), ["bash", "subagent"]);
    let message = Message {
        content: vec![ContentBlock::text("go")],
        source: MessageSource::User,
    };
    led.agent().follow_up(message).unwrap();
    led.agent().when_idle().await;
    let events = led.agent().session().events();
    let ended = events.iter().rev().find_map(|event| match &event.data {
        EventData::TurnEnd { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert_eq!(ended, Some(TurnEnd::Completed), "{events:?}");
    core.shutdown().await;
}

#[tokio::test]
async fn a_preset_that_stopped_to_fit_is_told_with_all_its_faults_before_there_is_an_agent() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), BASH);
    let core = core(home.path(), json!([]));
    let context = core.context();
    let filter = "provider = \"spawn\", tool_filter = { deny = [\"a\", \"b\"] }";
    write(home.path(), &SPAWN.replace("provider = \"spawn\"", filter));
    let session = Session::with_header(context.session_header(SessionId::new("s"), None));
    let refused = context.lead(session, None).await.unwrap_err().to_string();
    for name in ["\"a\"", "\"b\""] {
        assert!(
            refused.contains(&format!("no tool has the name {name}")),
            "{refused}"
        );
    }
    assert!(context.agents.get(&SessionId::new("s")).is_none());
    core.shutdown().await;
}

#[test]
fn a_file_with_the_id_of_a_shipped_preset_is_told_wherever_it_is_used() {
    let home = tempfile::tempdir().unwrap();
    let presets = Presets::in_directory(Some(home.path().to_owned()));
    presets.load("minimal").unwrap();
    let file = home.path().join("minimal.toml");
    fs::write(&file, BASH).unwrap();
    let told = format!(
        "preset \"minimal\" is there twice: it is shipped, and {} is another one: give that file another name",
        file.display()
    );
    assert_eq!(presets.load("minimal").unwrap_err().to_string(), told);
    assert_eq!(presets.copy("minimal", "mine").unwrap_err().to_string(), told);
    assert_eq!(presets.ids(), ["standard", "code", "minimal"]);
    presets.load("standard").unwrap();
}
