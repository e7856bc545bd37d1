//! Codex as a subagent: the real product against a scripted model, under a guard.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dsh_agent::{AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::{EffectHandle, Scope};
use dsh_session::SessionId;
use dsh_subagent::{Run, RunResult, StartError, StartRequest, StopReason, SubagentRegistry};
use dsh_subagent_codex::{CodexConfig, Deps, PermissionMode, install};
use dsh_subprocess::{GuardConfig, Launcher};
use dsh_testkit::process::read_pid;
use dsh_testkit::{Gate, eventually_within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::product::{Version, codex};
use tests::{Product, Turn};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// What the model has run: a child in a session of its own, and one that outlives its parent.
const TOOL: &str = "\
setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! > session
(setsid bash -c 'sleep 600 & echo $! > daemon' >/dev/null 2>&1 </dev/null &)
sleep 600";

/// The first version, of those that this was tried with, which tells a failed connection for what it is.
const NEWER: Version = Version(0, 171, 0);

/// The words for what a turn failed by, of the oldest version.
const WORDS: [&str; 11] = [
    "contextWindowExceeded",
    "sessionBudgetExceeded",
    "usageLimitExceeded",
    "serverOverloaded",
    "cyberPolicy",
    "internalServerError",
    "unauthorized",
    "badRequest",
    "threadRollbackFailed",
    "sandboxError",
    "other",
];

/// Those that newer versions have beside them.
const NEWER_WORDS: [&str; 8] = [
    "rateLimitExceeded",
    "flexUnavailable",
    "modelNotFound",
    "policyCapacityUnavailable",
    "bioPolicy",
    "misalignmentPolicyViolation",
    "tooManyDenials",
    "inferenceHookDenied",
];

const OBJECTS: [&str; 5] = [
    "httpConnectionFailed",
    "responseStreamConnectionFailed",
    "responseStreamDisconnected",
    "responseTooManyFailedAttempts",
    "activeTurnNotSteerable",
];

const ANSWERED: [&str; 5] = [
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/permissions/requestApproval",
    "item/tool/requestUserInput",
    "mcpServer/elicitation/request",
];

/// The longest that a tool may take to run, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(30);

/// An agent that can delegate to one or more of the product.
struct Delegating {
    scope: Scope,
    subagents: SubagentRegistry,
    launcher: Launcher,
    agents: AgentRegistry,
}

impl Delegating {
    fn new() -> Self {
        let helper =
            std::env::var_os("DSH_GUARD").expect("DSH_GUARD names the helper: run `cargo xtask test`");
        Self {
            scope: Scope::root("delegating"),
            subagents: SubagentRegistry::new(),
            launcher: Launcher::guarded(GuardConfig::helper(helper)).expect("the helper is there"),
            agents: AgentRegistry::new(),
        }
    }

    /// Installs it under this name, and makes an agent that works in its room.
    fn mount(&self, name: &str, product: &Product, mode: PermissionMode) -> Mounted {
        let env = product.env().iter();
        let config = CodexConfig {
            provider_name: name.to_owned(),
            program: Some(product.program().to_owned()),
            env: env
                .map(|(name, value)| (name.clone(), value.clone().into()))
                .collect(),
            permission_mode: mode,
            ..CodexConfig::default()
        };
        let deps = Deps {
            subagents: self.subagents.clone(),
            launcher: self.launcher.clone(),
            hurry: CancellationToken::new(),
            ambient: Vec::new(),
        };
        let provider = install(&self.scope, deps, config).expect("a new name");
        let parent = self.agents.create(AgentSpec {
            id: SessionId::new(format!("parent of {name}")),
            cwd: Some(product.room.work()),
            within: self.scope.clone(),
        });
        Mounted {
            name: name.to_owned(),
            subagents: self.subagents.clone(),
            provider,
            parent: parent.expect("a new id"),
        }
    }
}

/// One product that can be delegated to.
struct Mounted {
    name: String,
    subagents: SubagentRegistry,
    provider: EffectHandle,
    parent: AgentHandle,
}

impl Mounted {
    async fn try_start(&self, token: &CancellationToken) -> Result<Run, StartError> {
        let request = StartRequest::new("the very task", Arc::clone(self.parent.agent()), token.clone());
        self.subagents.start(&self.name, request).await
    }

    async fn start(&self) -> Run {
        let started = self.try_start(&CancellationToken::new()).await;
        started.expect("it starts")
    }
}

/// A run from its start to its end, after which nothing is left.
async fn ran(product: &Product, mode: PermissionMode) -> RunResult {
    let delegating = Delegating::new();
    let mounted = delegating.mount("codex", product, mode);
    let run = mounted.start().await;
    let result = run.result().await.expect("a result");
    run.dispose().await.expect("nothing is left");
    product.assert_clean();
    result
}

fn diagnostic(result: &RunResult) -> &str {
    result.diagnostic.as_ref().expect("a diagnostic").as_str()
}

fn line(fields: &str) -> String {
    format!("Product subagent failure (product: Codex; {fields})")
}

#[tokio::test]
async fn s208_a_task_is_answered_and_nothing_is_left() {
    let product = Product::codex([Turn::text("three")]).await;
    let result = ran(&product, PermissionMode::ApproveForMe).await;
    assert_eq!(
        (result.text().as_str(), &result.stop, &result.diagnostic),
        ("three", &StopReason::Completed, &None)
    );
    let asked = product.model.asked(1).await;
    assert_eq!(asked.header("authorization"), Some("Bearer scripted-key"));
    assert_eq!(asked.header("originator"), Some("deepseek-harness"));
    let input = asked.body["input"].as_array().expect("an array");
    let texts = input
        .iter()
        .flat_map(|item| item["content"].as_array().into_iter().flatten());
    let ours = texts.filter(|content| content["text"] == "the very task");
    assert_eq!(ours.count(), 1, "{asked:?}");
    assert_eq!(product.model.requests().len(), 1);
}

/// What the provider tells of failures, and answers: the product has the one exactly, and the other among more.
#[tokio::test]
async fn s208_the_schema_of_the_product_has_the_known_categories_and_requests() {
    let product = Product::codex([]).await;
    let schema = product.room.home().join("schema");
    let generated = Command::new(product.program())
        .args(["app-server", "generate-json-schema", "--out"])
        .arg(&schema)
        .env_clear()
        .envs(product.env().iter().map(|(name, value)| (name, value)))
        .kill_on_drop(true)
        .output()
        .await
        .expect("it starts");
    assert!(generated.status.success(), "{generated:?}");
    let variants = |name: &str, pointer: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(schema.join(name)).expect("a schema");
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        schema
            .pointer(pointer)
            .and_then(Value::as_array)
            .expect("a union")
            .clone()
    };
    let newer = codex::version() >= NEWER;
    // The newer one leaves the union open, and says so with another key.
    let union = if newer { "anyOf" } else { "oneOf" };
    let categories = variants(
        "ServerNotification.json",
        &format!("/definitions/CodexErrorInfo/{union}"),
    );
    let words = categories.iter().filter_map(|word| word["enum"].as_array());
    let words: BTreeSet<&str> = words.flatten().filter_map(Value::as_str).collect();
    let known = WORDS.iter().chain(NEWER_WORDS.iter().filter(|_| newer));
    assert_eq!(words, known.copied().collect());
    let objects = categories.iter().map(|object| &object["required"][0]);
    let objects: Vec<&Value> = objects.filter(|name| !name.is_null()).collect();
    assert_eq!(objects, OBJECTS);
    let requests = variants("ServerRequest.json", "/oneOf");
    for answered in ANSWERED {
        let is_it = |request: &Value| request["properties"]["method"]["enum"] == json!([answered]);
        assert!(requests.iter().any(is_it), "{answered}");
    }
    product.assert_clean_soon().await;
}

#[tokio::test]
async fn s211_a_denied_command_has_no_effect_and_the_failure_says_why() {
    let command = json!({
        "cmd": "echo SECRET_TOKEN > forbidden", "sandbox_permissions": "require_escalated", "justification": "x"
    });
    let product = Product::codex([
        Turn::Call("exec_command".to_owned(), command),
        Turn::Error(400, "SECRET_TOKEN in /private/secret.txt".to_owned()),
    ])
    .await;
    let result = ran(&product, PermissionMode::Never).await;
    assert!(!product.room.file("forbidden").exists());
    assert_eq!(product.model.requests().len(), 2);
    assert_eq!((&result.stop, result.text().as_str()), (&StopReason::Error, ""));
    assert_eq!(
        diagnostic(&result),
        line("stage: turn; category: other")
            + "\nCodex unattended decision (mode: never; request: command execution; decision: denied): \
               Codex rejected an escalation because the selected policy never asks for approval"
    );
}

#[tokio::test]
async fn s212_what_the_model_server_refused_is_a_category_and_no_text() {
    let full = json!({"type": "response.failed", "response": {
        "id": "response-1", "error": {"code": "context_length_exceeded", "message": "SECRET_TOKEN"}
    }});
    let unavailable = match codex::version() < NEWER {
        true => "other",
        false => "httpConnectionFailed; HTTP status: 503",
    };
    for (turn, category, stop) in [
        (
            Turn::Error(400, "SECRET_TOKEN".to_owned()),
            "other",
            StopReason::Error,
        ),
        (
            Turn::Error(503, "SECRET_TOKEN".to_owned()),
            unavailable,
            StopReason::Error,
        ),
        (
            Turn::Events(vec![full]),
            "contextWindowExceeded",
            StopReason::MaxTokens,
        ),
    ] {
        let product = Product::codex([turn]).await;
        let result = ran(&product, PermissionMode::Never).await;
        assert_eq!(
            diagnostic(&result),
            line(&format!("stage: turn; category: {category}"))
        );
        assert_eq!(result.stop, stop);
        assert_eq!(product.model.requests().len(), 1);
    }
}

#[tokio::test]
async fn s212_killed_in_the_middle_of_its_turn_it_has_failed_by_that_signal() {
    let product = Product::codex([Turn::silence()]).await;
    let delegating = Delegating::new();
    let mounted = delegating.mount("codex", &product, PermissionMode::Never);
    let run = mounted.start().await;
    product.model.asked(1).await;
    kill(Pid::from_raw(app_server(&product)), Signal::SIGKILL).expect("it runs");
    let result = run.result().await.expect("a result");
    assert_eq!(result.stop, StopReason::Error);
    assert_eq!(
        diagnostic(&result),
        line("stage: process; category: process-exit; signal: SIGKILL")
    );
    run.dispose().await.expect("nothing is left");
    product.assert_clean();
}

/// The one process of the room that is the app server.
fn app_server(product: &Product) -> i32 {
    let is_server = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.starts_with(product.program().as_os_str().as_encoded_bytes())
    };
    let servers: Vec<u32> = product.room.processes().into_iter().filter(is_server).collect();
    assert_eq!(servers.len(), 1, "{servers:?}");
    servers[0].cast_signed()
}

#[tokio::test]
async fn s209_a_product_that_cannot_start_is_told_safely() {
    let product = Product::codex([]).await;
    // With a configuration that it cannot use it would go on with its own, and ask for other machines.
    std::fs::remove_dir_all(product.room.home().join("codex")).expect("its home");
    let delegating = Delegating::new();
    let mounted = delegating.mount("codex", &product, PermissionMode::Never);
    let refused = mounted.try_start(&CancellationToken::new()).await;
    let refused = refused.expect_err("no configuration").to_string();
    assert_eq!(
        refused,
        format!(
            "subagent-codex: {}",
            line("stage: initialize; category: unknown; exit code: 1")
        )
    );
    product.assert_clean();
}

#[tokio::test]
async fn s213_a_bypass_writes_what_it_is_told_to() {
    let product = Product::codex([Turn::shell("echo one two > made"), Turn::text("three")]).await;
    let result = ran(&product, PermissionMode::DangerouslyBypassApprovalsAndSandbox).await;
    assert_eq!(
        (result.text().as_str(), result.stop),
        ("three", StopReason::Completed)
    );
    let made = std::fs::read_to_string(product.room.file("made"));
    assert_eq!(made.expect("it was written"), "one two\n");
}

#[tokio::test]
async fn s214_cancelled_in_a_held_request_it_is_aborted_and_gone() {
    let product = Product::codex([Turn::text("late").held(&Gate::new())]).await;
    let delegating = Delegating::new();
    let mounted = delegating.mount("codex", &product, PermissionMode::Never);
    let token = CancellationToken::new();
    let run = mounted.try_start(&token).await.expect("it starts");
    product.model.asked(1).await;
    token.cancel();
    assert_eq!(run.result().await.expect("a result"), RunResult::aborted());
    run.dispose().await.expect("nothing is left");
    product.assert_clean();
}

#[tokio::test]
async fn s210_of_two_instances_one_goes_and_the_other_completes() {
    let gate = Gate::new();
    let going = Product::codex([Turn::silence()]).await;
    let staying = Product::codex([Turn::text("still here").held(&gate)]).await;
    let delegating = Delegating::new();
    let first = delegating.mount("codex-going", &going, PermissionMode::Never);
    let second = delegating.mount("codex-staying", &staying, PermissionMode::Never);
    let (one, two) = tokio::join!(first.start(), second.start());
    assert_ne!(one.id(), two.id());
    tokio::join!(going.model.asked(1), staying.model.asked(1));

    first.provider.dispose().await;
    let refused = first.try_start(&CancellationToken::new()).await;
    assert!(matches!(refused, Err(StartError::NoProvider(_))), "{refused:?}");
    one.cancel();
    assert_eq!(one.result().await.expect("a result").stop, StopReason::Aborted);
    one.dispose().await.expect("nothing is left");
    going.assert_clean();
    assert!(!staying.room.processes().is_empty());

    gate.open();
    assert_eq!(two.result().await.expect("a result").text(), "still here");
    two.dispose().await.expect("nothing is left");
    staying.assert_clean();
}

#[tokio::test]
async fn a_parent_that_goes_takes_its_product_and_every_session_of_its_tools() {
    let product = Product::codex([Turn::shell(TOOL), Turn::silence()]).await;
    let delegating = Delegating::new();
    let mode = PermissionMode::DangerouslyBypassApprovalsAndSandbox;
    let mounted = delegating.mount("codex", &product, mode);
    let run = mounted.start().await;
    let files = ["session", "daemon"].map(|name| product.room.file(name));
    let known = || files.iter().all(|file| read_pid(file).is_some());
    eventually_within("the tool to run", LIMIT, known).await;

    mounted.parent.dispose().await.expect("it goes");
    product.assert_clean();
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    run.dispose().await.expect("nothing is left");
}
