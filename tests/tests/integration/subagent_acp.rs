//! Agents of the Agent Client Protocol as subagents: `dsh acp` itself, and one that does nothing it should, under guards.

use std::time::{Duration, Instant};

use dsh_agent::{AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_subagent::{Run, StartRequest, StopReason, SubagentRegistry};
use dsh_subagent_acp::{AcpConfig, Deps, Permission, install};
use dsh_subprocess::{GuardConfig, Launcher};
use dsh_testkit::process::is_gone;
use dsh_testkit::{eventually, eventually_within};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::{Room, says, starts};
use tokio_util::sync::CancellationToken;

/// The longest that anything here may take, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(30);

/// Somebody in a room who delegates to one agent.
struct Delegating {
    room: Room,
    scope: Scope,
    subagents: SubagentRegistry,
    parent: AgentHandle,
}

impl Delegating {
    fn to(room: Room, config: AcpConfig) -> Self {
        let helper =
            std::env::var_os("DSH_GUARD").expect("DSH_GUARD names the helper: run `cargo xtask test`");
        let (scope, subagents) = (Scope::root("delegating"), SubagentRegistry::new());
        let deps = Deps {
            subagents: subagents.clone(),
            launcher: Launcher::guarded(GuardConfig::helper(helper)).expect("the helper is there"),
            hurry: CancellationToken::new(),
            ambient: environment(&room)
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec(),
        };
        install(&scope, deps, config).expect("a configuration");
        let parent = AgentRegistry::new().create(AgentSpec {
            id: SessionId::new("parent"),
            cwd: Some(room.work()),
            within: scope.clone(),
        });
        Self {
            room,
            scope,
            subagents,
            parent: parent.expect("the first one"),
        }
    }

    async fn start(&self) -> Run {
        let request = StartRequest::new("the task", self.parent.agent().clone(), CancellationToken::new());
        let started = self.subagents.start("acp", request).await;
        started.expect("it starts")
    }

    async fn close(self) -> Room {
        self.scope.close().await.expect("it closes");
        self.room.assert_empty();
        self.room
    }
}

fn environment(room: &Room) -> [(String, String); 5] {
    let path = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    [
        room.mark(),
        ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
        ("HOME".to_owned(), path(room.home())),
        ("DSH_HOME".to_owned(), path(room.home())),
        ("TMPDIR".to_owned(), path(room.tmp())),
    ]
}

fn binary() -> String {
    std::env::var("DSH_BIN").expect("DSH_BIN names the dsh binary: run `cargo xtask test`")
}

/// `dsh acp`, whose model says these turns.
fn ours(room: &Room, turns: Value) -> AcpConfig {
    let model = room.script("child.json", turns);
    AcpConfig {
        args: ["acp", "--model", &model].map(str::to_owned).to_vec(),
        ..AcpConfig::new(binary())
    }
}

/// A foreground call of `bash`.
fn runs(command: &str) -> Value {
    let arguments = json!({"command": command, "description": "Work"});
    json!({"tool_calls": [{"name": "bash", "arguments": arguments}]})
}

#[tokio::test]
async fn our_own_agent_does_a_task_where_its_parent_works() {
    let room = Room::new();
    let turns = json!([runs("pwd > where"), {"reasoning": "hm", "text": "The answer."}]);
    let config = ours(&room, turns);
    let delegating = Delegating::to(room, config);
    let run = delegating.start().await;
    let result = run.result().await.expect("a result");
    assert_eq!(
        (result.text().as_str(), &result.stop, &result.diagnostic),
        ("The answer.", &StopReason::Completed, &None)
    );
    run.dispose().await.expect("it goes");
    let room = delegating.close().await;
    let where_it_worked = std::fs::read_to_string(room.file("where")).expect("it wrote it");
    assert_eq!(where_it_worked.trim(), room.work().to_string_lossy());
}

#[tokio::test]
async fn an_answer_that_was_cut_off_and_a_model_that_fails_are_told_apart() {
    let cut = json!({"text": "part", "finish": "max-tokens"});
    // What it had said of an answer that failed, `dsh acp` keeps for itself.
    let fails = json!({"text": "part", "error": {"message": "SECRET_TOKEN is wrong"}});
    let error = "ACP subagent failure (stage: prompt; category: error-response; error code: -32603)";
    for (turn, stop, said, diagnostic) in [
        (cut, StopReason::MaxTokens, "part", None),
        (fails, StopReason::Error, "", Some(error)),
    ] {
        let room = Room::new();
        let config = ours(&room, json!([turn]));
        let delegating = Delegating::to(room, config);
        let result = delegating.start().await.result().await.expect("a result");
        assert_eq!((result.text().as_str(), &result.stop), (said, &stop));
        assert_eq!(result.diagnostic.as_ref().map(|said| said.as_str()), diagnostic);
        delegating.close().await;
    }
}

#[tokio::test]
async fn what_our_own_agent_asks_for_is_allowed_as_configured() {
    for (permission, done) in [(Permission::Reject, false), (Permission::Allow, true)] {
        let room = Room::new();
        std::fs::write(room.home().join("config.toml"), "[approval]\nask = [\"bash\"]\n").expect("a file");
        let config = AcpConfig {
            permission,
            ..ours(&room, json!([runs("touch done"), says("Over.")]))
        };
        let delegating = Delegating::to(room, config);
        let result = delegating.start().await.result().await.expect("a result");
        assert_eq!(
            (result.text().as_str(), result.stop),
            ("Over.", StopReason::Completed)
        );
        let room = delegating.close().await;
        assert_eq!(room.file("done").exists(), done, "{permission:?}");
    }
}

#[tokio::test]
async fn the_background_tasks_of_our_own_agent_end_with_it() {
    let room = Room::new();
    let config = ours(
        &room,
        json!([starts("echo $$ > pid; exec sleep 600"), says("It runs.")]),
    );
    let delegating = Delegating::to(room, config);
    let run = delegating.start().await;
    assert_eq!(run.result().await.expect("a result").text(), "It runs.");
    let task = delegating.room.pid("pid").await;
    assert!(!is_gone(task), "the agent is still there, and so is its task");
    run.dispose().await.expect("it goes");
    assert!(is_gone(task));
    delegating.close().await;
}

#[tokio::test]
async fn our_own_agent_is_cancelled_in_the_middle_of_a_command() {
    let room = Room::new();
    let work = runs("trap 'echo > told; exit' TERM; echo $$ > pid; while :; do sleep 0.05; done");
    let config = ours(
        &room,
        json!([{"text": "Well, ", "tool_calls": work["tool_calls"]}]),
    );
    let delegating = Delegating::to(room, config);
    let run = delegating.start().await;
    let command = delegating.room.pid("pid").await;
    run.cancel();
    let result = run.result().await.expect("a result");
    assert_eq!(
        (result.text().as_str(), result.stop, result.diagnostic),
        ("Well, ", StopReason::Aborted, None)
    );
    // It hears `session/cancel`, long before anybody disposes of it.
    eventually("the agent ends the command", || is_gone(command)).await;
    assert!(delegating.room.file("told").exists());
    run.dispose().await.expect("it goes");
    delegating.close().await;
}

/// Does nothing that it should, leaves processes in sessions of their own, and then `$1`.
const RUDE: &str = r#"
trap '' TERM INT HUP
setsid sleep 600 </dev/null >/dev/null 2>&1 &
(setsid sh -c 'sleep 600 & echo $! > daemon' </dev/null >/dev/null 2>&1 &)
until [ -s daemon ]; do sleep 0.02; done
exec python3 -c '
import json, os, sys, time
def answer(result):
    request = json.loads(sys.stdin.readline())
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
answer({"protocolVersion": 1})
answer({} if sys.argv[1] == "nameless" else {"sessionId": "s"})
update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "so far"}}
print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}), flush=True)
sys.stdin.readline()
open("at-work", "w").close()
if sys.argv[1] == "crash":
    os.kill(os.getpid(), 11)
while True:
    time.sleep(600)
' "$1"
"#;

fn rude(how: &str) -> AcpConfig {
    AcpConfig {
        args: ["-c", RUDE, "rude", how].map(str::to_owned).to_vec(),
        dispose_eof_grace_ms: 100.0,
        dispose_grace_ms: 100.0,
        ..AcpConfig::new("sh")
    }
}

#[tokio::test]
async fn an_agent_that_crashes_leaves_nothing() {
    let delegating = Delegating::to(Room::new(), rude("crash"));
    let run = delegating.start().await;
    let result = run.result().await.expect("a result");
    assert_eq!(result.stop, StopReason::Error);
    let said = result.diagnostic.expect("a diagnostic").to_string();
    assert!(
        said.starts_with("ACP subagent failure (stage: prompt; category: process-exit; signal: SIGSEGV"),
        "{said}"
    );
    let daemon = delegating.room.pid("daemon").await;
    assert!(!is_gone(daemon), "only a disposal ends it");
    run.dispose().await.expect("nothing is left");
    assert!(is_gone(daemon));
    delegating.close().await;
}

#[tokio::test]
async fn an_agent_that_is_deaf_to_everything_leaves_nothing() {
    let delegating = Delegating::to(Room::new(), rude("deaf"));
    let run = delegating.start().await;
    delegating.room.made("at-work").await;
    run.cancel();
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    run.dispose().await.expect("nothing is left");
    delegating.close().await;
}

#[tokio::test]
async fn an_agent_that_never_starts_leaves_nothing() {
    let delegating = Delegating::to(Room::new(), rude("nameless"));
    let agent = delegating.parent.agent().clone();
    let request = StartRequest::new("the task", agent, CancellationToken::new());
    let error = delegating.subagents.start("acp", request).await;
    assert_eq!(
        error.expect_err("no session").to_string(),
        "subagent-acp: ACP child published without a session id"
    );
    delegating.room.assert_empty();
    delegating.close().await;
}

/// A room in which `dsh run` delegates to `dsh acp`, whose model says `child`; the arguments of the run.
fn nested(child: Value, parent: Value) -> (Room, [String; 5]) {
    let room = Room::new();
    let config = ours(&room, child);
    let arguments = mounted(&room, &config, parent);
    (room, arguments)
}

/// Lets `dsh run` delegate to an agent; its arguments.
fn mounted(room: &Room, config: &AcpConfig, parent: Value) -> [String; 5] {
    let home = room.home();
    for directory in ["profiles", "presets"] {
        std::fs::create_dir(home.join(directory)).expect("a directory");
    }
    let env: String = environment(room)
        .iter()
        .map(|(name, value)| format!("{name} = {value:?}\n"))
        .collect();
    let profile = format!(
        "[[providers]]\nid = \"subagent-acp\"\nname = \"acp\"\n[providers.config]\ncommand = {:?}\nargs = {:?}\n\
         dispose_eof_grace_ms = {:?}\ndispose_grace_ms = {:?}\n[providers.config.env]\n{env}",
        config.command, config.args, config.dispose_eof_grace_ms, config.dispose_grace_ms
    );
    std::fs::write(home.join("profiles/default.toml"), profile).expect("a profile");
    let preset = "[[tools]]\nid = \"tool-acp\"\nname = \"subagent\"\n[tools.config]\nprovider = \"acp\"\n\
                  tool_name = \"subagent_acp\"\nmax_depth = \"provider-managed\"\n";
    std::fs::write(home.join("presets/acp.toml"), preset).expect("a preset");
    let model = room.script("parent.json", parent);
    let arguments = [
        "go",
        "--model",
        &model,
        "--preset=acp",
        "--output-format=stream-json",
    ];
    arguments.map(str::to_owned)
}

fn delegates() -> Value {
    let task = json!({"description": "the label", "prompt": "the task"});
    json!({"tool_calls": [{"name": "subagent_acp", "arguments": task}]})
}

#[tokio::test]
async fn a_run_delegates_to_our_own_agent() {
    let child = json!([
        starts("echo $$ > pid; exec sleep 600"),
        {"text": "From below.", "wait_for_file": "pid"}
    ]);
    let (room, arguments) = nested(child, json!([delegates(), says("Done.")]));
    let ran = room.run(&arguments.each_ref().map(String::as_str)).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = ran.of_type("tool_result");
    assert_eq!(results[0]["text"], "From below.", "{ran:?}");
    assert!(is_gone(room.pid("pid").await));
    room.assert_empty();
}

#[tokio::test]
async fn our_own_agent_goes_with_a_run_that_is_told_to_end_or_killed() {
    for (signal, code) in [(Signal::SIGTERM, Some(143)), (Signal::SIGKILL, None)] {
        let child = json!([runs(
            "setsid sleep 600 & echo $! > stray; echo $$ > pid; sleep 600"
        )]);
        let (room, arguments) = nested(child, json!([delegates(), says("never asked")]));
        let running = room.running(&arguments.each_ref().map(String::as_str));
        let (command, stray) = (room.pid("pid").await, room.pid("stray").await);
        running.signal(signal);
        assert_eq!(running.ended().await.code, code);
        eventually_within("all of it to go", LIMIT, || room.processes().is_empty()).await;
        assert!(is_gone(command) && is_gone(stray));
    }
}

#[tokio::test]
async fn a_second_signal_takes_the_graces_from_an_agent_that_is_deaf_to_everything() {
    let room = Room::new();
    let config = AcpConfig {
        dispose_eof_grace_ms: 600_000.0,
        dispose_grace_ms: 600_000.0,
        ..rude("deaf")
    };
    let arguments = mounted(&room, &config, json!([delegates(), says("never asked")]));
    let running = room.running(&arguments.each_ref().map(String::as_str));
    room.made("at-work").await;
    let begun = Instant::now();
    // Two that are pending at once are one, unless they are different ones.
    running.signal(Signal::SIGTERM);
    running.signal(Signal::SIGINT);
    let code = running.ended().await.code;
    // Nor is it the end of what a shutdown waits for.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    room.assert_empty();
}
