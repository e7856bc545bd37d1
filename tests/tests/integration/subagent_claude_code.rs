//! Claude Code as a subagent, the real product against scripted models.

mod background;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dsh_agent::{AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::{EffectHandle, Scope};
use dsh_session::SessionId;
use dsh_subagent::{Run, RunResult, StartError, StartRequest, StopReason, SubagentRegistry};
use dsh_subagent_claude_code::{ClaudeCodeConfig, Deps, PermissionMode, Variable, install};
use dsh_subprocess::{GuardConfig, Launcher};
use dsh_testkit::process::{is_gone, read_pid};
use dsh_testkit::{Gate, eventually_within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::json;
use tests::product::{Version, claude};
use tests::{Product, Room, Turn};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The longest that a product may take for anything, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(60);

/// The first version, of those that this was tried with, which asks for what not every server has.
const NEWER: Version = Version(2, 1, 332);

/// What the product's own denial and ours say on the second line of a diagnostic.
const BY_PRODUCT: &str = "Claude Code denied the request before an interactive prompt";
const BY_US: &str = "the provider does not request human approval";

/// Somebody who delegates to a product that was not started yet.
struct Parent {
    product: Product,
    subagents: SubagentRegistry,
    agent: AgentHandle,
    scope: Scope,
}

impl Parent {
    /// Delegates in the product's room, to a product under this name and mode.
    fn of(product: Product, name: &str, mode: PermissionMode) -> Parent {
        Parent::configured(product, name, mode, []).0
    }

    /// With these variables, and the handle of the provider.
    fn configured<const N: usize>(
        product: Product,
        name: &str,
        mode: PermissionMode,
        variables: [(&str, Option<&str>); N],
    ) -> (Parent, EffectHandle) {
        let scope = Scope::root("test");
        let spec = AgentSpec {
            id: SessionId::new("parent"),
            cwd: Some(product.room.work()),
            within: scope.clone(),
        };
        let agent = AgentRegistry::new().create(spec).expect("a new id");
        let parent = Parent {
            product,
            subagents: SubagentRegistry::new(),
            agent,
            scope,
        };
        let offered = parent.offer(&parent.product, name, mode, variables);
        (parent, offered)
    }

    fn offer<const N: usize>(
        &self,
        product: &Product,
        name: &str,
        mode: PermissionMode,
        variables: [(&str, Option<&str>); N],
    ) -> EffectHandle {
        let own = product
            .env()
            .iter()
            .map(|(name, value)| (name.as_str(), Some(value.as_str())));
        let env = own.chain(variables);
        let env = env.map(|(name, value)| (name.to_owned(), value.map_or(Variable::Removed, Variable::from)));
        let config = ClaudeCodeConfig {
            provider_name: name.to_owned(),
            program: Some(product.program().to_owned()),
            env: BTreeMap::from_iter(env),
            permission_mode: mode,
            ..ClaudeCodeConfig::default()
        };
        let helper =
            std::env::var_os("DSH_GUARD").expect("DSH_GUARD names the helper: run `cargo xtask test`");
        let deps = Deps {
            subagents: self.subagents.clone(),
            launcher: Launcher::guarded(GuardConfig::helper(helper)).expect("the helper is there"),
            hurry: CancellationToken::new(),
            ambient: Vec::new(),
        };
        install(&self.scope, deps, config).expect("a provider")
    }

    async fn start(&self, name: &str) -> Result<Run, StartError> {
        let task = StartRequest::new("the task", self.agent.agent().clone(), CancellationToken::new());
        timeout(LIMIT, self.subagents.start(name, task))
            .await
            .expect("a start comes to its end")
    }

    /// What came of a run, of which nothing is left.
    async fn result(&self) -> RunResult {
        let run = self.start("claude-code").await.expect("it starts");
        let result = result(&run).await;
        self.gone(&run).await;
        result
    }

    /// After the disposal of a run nothing of the product is left.
    async fn gone(&self, run: &Run) {
        run.dispose().await.expect("nothing is left");
        self.product.assert_clean();
    }
}

/// A run with one product, which says `turns`, in this mode.
async fn run(mode: PermissionMode, turns: impl IntoIterator<Item = Turn>) -> (Parent, RunResult) {
    let parent = Parent::of(Product::claude(turns).await, "claude-code", mode);
    let result = parent.result().await;
    (parent, result)
}

async fn result(run: &Run) -> RunResult {
    let result = timeout(LIMIT, run.result()).await;
    result.expect("a run comes to its end").expect("a result")
}

fn line(what: &str) -> String {
    format!("Product subagent failure (product: Claude Code; {what})")
}

/// The diagnostic of a failure, which has no output.
fn diagnostic(result: &RunResult) -> &str {
    assert_eq!(
        (&result.stop, result.output.len()),
        (&StopReason::Error, 0),
        "{result:?}"
    );
    result
        .diagnostic
        .as_ref()
        .expect("a failure says what it is")
        .as_str()
}

fn write_to(path: &Path) -> Turn {
    Turn::Call(
        "Write".to_owned(),
        json!({"file_path": path, "content": "SECRET_TOKEN"}),
    )
}

fn refused() -> Turn {
    Turn::Error(400, "SECRET_TOKEN in /private/secret.txt".to_owned())
}

/// The process of the product itself.
fn leader(product: &Product) -> Option<u32> {
    let is_product = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == product.program())
    };
    product.room.processes().into_iter().find(is_product)
}

#[tokio::test]
async fn s253_it_answers_with_the_model_of_its_settings() {
    let (parent, result) = run(PermissionMode::DontAsk, [Turn::text("the answer")]).await;
    assert_eq!(
        (result.stop.clone(), result.text().as_str()),
        (StopReason::Completed, "the answer")
    );
    assert_eq!((result.output.len(), &result.diagnostic), (1, &None));
    let requests = parent.product.model.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("x-api-key"), Some("scripted-key"));
    assert_eq!(requests[0].body["model"], "scripted-model");
    let said = requests[0].body["messages"].to_string();
    assert_eq!(said.matches(r#""text":"the task""#).count(), 1, "{said}");
}

#[tokio::test]
async fn s257_a_write_is_denied_and_the_failure_says_so() {
    let (parent, result) = run(
        PermissionMode::DontAsk,
        [write_to(Path::new("forbidden")), refused()],
    )
    .await;
    let said = diagnostic(&result);
    let first = line("stage: query-run; category: invalid-success; HTTP status: 400");
    assert_eq!(
        said,
        format!(
            "{first}\nClaude Code unattended decision (mode: dontAsk; request: tool permission; decision: denied): {BY_PRODUCT}"
        )
    );
    assert!(!parent.product.room.file("forbidden").exists());
    assert_eq!(parent.product.model.requests().len(), 2);
}

#[tokio::test]
async fn s230_what_it_asks_for_is_denied_and_it_goes_on() {
    let elsewhere = Room::new();
    let outside = elsewhere.file("outside");
    let (parent, result) = run(
        PermissionMode::AcceptEdits,
        [write_to(&outside), Turn::text("not written")],
    )
    .await;
    assert_eq!(result.text(), "not written");
    assert_eq!(result.diagnostic, None);
    assert!(!outside.exists());
    let told = parent.product.model.asked(2).await.body["messages"].to_string();
    assert!(told.contains("This run is unattended"), "{told}");

    let (_, result) = run(PermissionMode::AcceptEdits, [write_to(&outside), refused()]).await;
    let said = diagnostic(&result);
    assert!(
        said.ends_with(BY_US) && said.contains("mode: acceptEdits"),
        "{said}"
    );
    assert!(!said.contains("SECRET") && !said.contains("outside"), "{said}");
}

#[tokio::test]
async fn s258_without_permissions_it_writes() {
    let (parent, result) = run(
        PermissionMode::BypassPermissions,
        [Turn::shell("echo one two > made"), Turn::text("written")],
    )
    .await;
    assert_eq!(result.text(), "written");
    let made = std::fs::read_to_string(parent.product.room.file("made")).expect("it was written");
    assert_eq!(made, "one two\n");
}

#[tokio::test]
async fn s259_a_plan_is_an_answer_and_nobody_approves_it() {
    let plan = Turn::Call(
        "ExitPlanMode".to_owned(),
        json!({"plan": "first this, then that"}),
    );
    let (parent, result) = run(PermissionMode::Plan, [plan, Turn::text("the plan")]).await;
    assert_eq!(result.text(), "the plan");
    let requests = parent.product.model.requests();
    assert_eq!(requests.len(), 2);
    let told = requests[1].body["messages"].to_string();
    let refusals = [
        "ExitPlanMode exists but is not enabled",
        "ExitPlanMode is disabled for this session",
    ];
    let refused = refusals[usize::from(claude::version() >= NEWER)];
    assert!(told.contains(refused), "{told}");
}

#[tokio::test]
async fn s254_a_limit_of_turns_that_the_environment_sets_is_told() {
    let product = Product::claude([Turn::shell("echo done > made; echo SECRET_TOKEN")]).await;
    let limit = [("CLAUDE_CODE_MAX_TURNS", Some("1"))];
    let mode = PermissionMode::BypassPermissions;
    let (parent, _) = Parent::configured(product, "claude-code", mode, limit);
    let result = parent.result().await;
    assert_eq!(
        diagnostic(&result),
        line("stage: query-run; category: error_max_turns")
    );
    assert!(parent.product.room.file("made").exists(), "what was done is done");
    assert_eq!(parent.product.model.requests().len(), 1);
}

#[tokio::test]
async fn s244_a_refusal_of_the_model_server_is_a_failure() {
    let (parent, result) = run(PermissionMode::DontAsk, [refused()]).await;
    assert_eq!(
        diagnostic(&result),
        line("stage: query-run; category: invalid-success; HTTP status: 400")
    );
    assert_eq!(parent.product.model.requests().len(), 1);
}

/// A newer one takes the refusal for one of what it asked for that is new, and asks again with less of it.
#[tokio::test]
async fn s244_a_refusal_is_a_failure_however_often_it_asks_again() {
    let times = if claude::version() < NEWER { 1 } else { 6 };
    let product = Product::claude(vec![refused(); times]).await;
    let all = [(claude::PLAIN, None)];
    let (parent, _) = Parent::configured(product, "claude-code", PermissionMode::DontAsk, all);
    let result = parent.result().await;
    assert_eq!(
        diagnostic(&result),
        line("stage: query-run; category: invalid-success; HTTP status: 400")
    );
    assert_eq!(parent.product.model.requests().len(), times);
}

#[tokio::test]
async fn s260_a_held_request_is_aborted() {
    let product = Product::claude([Turn::silence()]).await;
    let parent = Parent::of(product, "claude-code", PermissionMode::DontAsk);
    let run = parent.start("claude-code").await.expect("it starts");
    parent.product.model.asked(1).await;
    run.cancel();
    let result = result(&run).await;
    assert_eq!(
        (result.stop, result.output.len(), result.diagnostic),
        (StopReason::Aborted, 0, None)
    );
    parent.gone(&run).await;
}

#[tokio::test]
async fn s256_a_product_that_is_ended_in_a_turn_has_failed() {
    for (signal, expected) in [
        (
            Signal::SIGKILL,
            vec!["stage: process; category: process-exit; signal: SIGKILL"],
        ),
        (
            // Whether it still tells that it was interrupted depends on who is faster.
            Signal::SIGTERM,
            vec![
                "stage: process; category: process-exit; exit code: 143",
                "stage: query-run; category: error_during_execution",
            ],
        ),
    ] {
        let product = Product::claude([Turn::silence()]).await;
        let parent = Parent::of(product, "claude-code", PermissionMode::DontAsk);
        let run = parent.start("claude-code").await.expect("it starts");
        parent.product.model.asked(1).await;
        let pid = leader(&parent.product).expect("it runs");
        kill(Pid::from_raw(pid.cast_signed()), signal).expect("it runs");
        let result = result(&run).await;
        let said = diagnostic(&result);
        assert!(expected.iter().any(|what| line(what) == said), "{said}");
        parent.gone(&run).await;
    }
}

#[tokio::test]
async fn s255_two_instances_live_side_by_side_and_one_outlives_the_other() {
    let gate = Gate::new();
    let first = Product::claude([Turn::text("late").held(&gate)]).await;
    let second = Product::claude([Turn::silence()]).await;
    let (parent, offered) = Parent::configured(first, "first", PermissionMode::DontAsk, []);
    parent.offer(&second, "second", PermissionMode::Plan, []);
    assert_eq!(parent.subagents.names(), ["first", "second"]);
    let one = parent.start("first").await.expect("it starts");
    let two = parent.start("second").await.expect("it starts");
    parent.product.model.asked(1).await;
    second.model.asked(1).await;

    offered.dispose().await;
    let refused = parent.start("first").await.expect_err("unloaded");
    assert_eq!(refused.code(), Some("NO_PROVIDER"));

    two.cancel();
    assert_eq!(result(&two).await.stop, StopReason::Aborted);
    two.dispose().await.expect("nothing is left");
    second.assert_clean();
    gate.open();
    assert_eq!(result(&one).await.text(), "late");
    parent.gone(&one).await;
}

#[tokio::test]
async fn s248_a_product_that_exits_at_once_is_a_failed_start() {
    let product = Product::claude([Turn::text("no root, no refusal")]).await;
    let mode = PermissionMode::BypassPermissions;
    let (parent, _) = Parent::configured(product, "claude-code", mode, [("IS_SANDBOX", None)]);
    // It lets nobody bypass permissions who could do everything.
    if geteuid().is_root() {
        let refused = parent.start("claude-code").await.expect_err("root");
        let said = line("stage: query-start; category: unknown; exit code: 1");
        assert_eq!(refused.to_string(), format!("subagent-claude-code: {said}"));
        parent.product.assert_clean();
    } else {
        assert_eq!(parent.result().await.text(), "no root, no refusal");
    }
}

#[tokio::test]
async fn a_parent_that_goes_leaves_nothing_of_a_product_in_the_middle_of_a_tool() {
    const TOOL: &str = "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! > session\n\
                        nohup sleep 600 >/dev/null 2>&1 </dev/null & echo $! > nohup\n\
                        echo $$ > shell; sleep 600";
    let product = Product::claude([Turn::shell(TOOL), Turn::silence()]).await;
    let parent = Parent::of(product, "claude-code", PermissionMode::BypassPermissions);
    let run = parent.start("claude-code").await.expect("it starts");
    let files = ["session", "nohup", "shell"].map(|name| parent.product.room.file(name));
    let known = || files.iter().all(|file| read_pid(file).is_some());
    eventually_within("the tool to run", LIMIT, known).await;
    assert!(leader(&parent.product).is_some());

    parent.agent.dispose().await.expect("it goes");
    assert!(files.iter().all(|file| read_pid(file).is_some_and(is_gone)));
    parent.product.assert_clean();
    assert_eq!(result(&run).await.stop, StopReason::Aborted);
}
