//! Calls that wait for their child.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dsh_agent::ModelRoute;
use dsh_llm::CallId;
use dsh_subagent::{StartFailure, StopReason, SubagentEvent, ToolFilter};
use dsh_testkit::{Gate, eventually};
use dsh_tool_subagent::{AgentOptions, MaxDepth, ToolFilterConfig, ToolSubagentConfig, install};
use dsh_tools::ToolContext;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::rig::{Rig, args, background};
use crate::scripted::Script;

#[tokio::test]
async fn s22_s42_the_answer_of_a_child_that_was_released() {
    let (rig, provider) = Rig::with(Script::default());
    let result = rig.execute("subagent", args(), CancellationToken::new()).await;
    assert_eq!(result.single_text(), Some("scripted reply"));
    assert_eq!(
        result.value,
        Some(json!({ "kind": "foreground", "runId": "scripted-1", "output": "scripted reply" }))
    );
    assert_eq!((provider.releases(), provider.running()), (1, 0));
}

#[tokio::test]
async fn s27_s28_s29_s30_s32_s43_sl2_a_failure_says_what_it_is_and_how_far_it_came() {
    let refused = |stop, reply: &'static str, diagnostic| async move {
        let script = Script {
            diagnostic,
            ..Script::ends(stop, reply)
        };
        let (rig, provider) = Rig::with(script);
        let text = rig.foreground().await;
        assert_eq!((provider.releases(), provider.running()), (1, 0));
        text
    };
    assert_eq!(
        refused(StopReason::Aborted, "", None).await,
        "Error: subagent run was cancelled"
    );
    assert_eq!(
        refused(StopReason::Error, "", None).await,
        "Error: subagent run failed"
    );
    assert_eq!(
        refused(StopReason::MaxTokens, "", None).await,
        "Error: subagent run hit its token limit before finishing"
    );
    assert_eq!(
        refused(StopReason::Refusal, "", None).await,
        "Error: subagent declined the task"
    );
    assert_eq!(
        refused(StopReason::Other("tool-limit".to_owned()), "", None).await,
        "Error: subagent run ended abnormally (tool-limit)"
    );
    assert_eq!(
        refused(
            StopReason::Error,
            "partial assistant text",
            Some("Claude Code denied a tool request")
        )
        .await,
        "Error: subagent run failed\nDiagnostic: Claude Code denied a tool request\nPartial output before the run \
         ended:\npartial assistant text"
    );
    assert_eq!(
        refused(StopReason::MaxTokens, "so far", None).await,
        "Error: subagent run hit its token limit before finishing\nPartial output before the run ended:\nso far"
    );
}

#[tokio::test]
async fn sl4_faults_of_the_run_and_of_its_release_are_both_told() {
    let faulty = |run_fault, release_fault, stop| async move {
        let script = Script {
            run_fault,
            release_fault,
            ..Script::ends(stop, "")
        };
        Rig::with(script).0.foreground().await
    };
    let done = StopReason::Completed;
    assert_eq!(
        faulty(Some("transport gone"), None, done.clone()).await,
        "Error: transport gone"
    );
    assert_eq!(
        faulty(None, Some("reap failed"), done.clone()).await,
        "Error: reap failed"
    );
    assert_eq!(
        faulty(Some("result failed"), Some("reap failed"), done).await,
        "Error: subagent run failed: result failed; dispose failed: reap failed"
    );
    assert_eq!(
        faulty(None, Some("reap failed"), StopReason::Refusal).await,
        "Error: subagent run failed: subagent declined the task; dispose failed: reap failed"
    );
}

#[tokio::test]
async fn s33_s48_s59_s60_sl11_a_request_asks_for_what_is_configured_and_nothing_else() {
    let (rig, provider) = Rig::with(Script::default());
    rig.foreground().await;
    let plain = provider.requests().remove(0);
    assert_eq!(dsh_llm::text_of(&plain.prompt), "Count the files.");
    assert_eq!(plain.label.as_deref(), Some("Count files"));
    assert_eq!(plain.max_depth, Some(3));
    assert_eq!(
        (plain.model, plain.persona, plain.tool_filter, plain.output_schema),
        (None, None, None, None)
    );
    assert_eq!(plain.parent.id(), rig.parent.agent().id());

    let deny = Some(vec!["bash".to_owned()]);
    let config = ToolSubagentConfig {
        tool_name: "configured".to_owned(),
        agent_options: Some(AgentOptions {
            provider: Some("deepseek".to_owned()),
            model: Some("chat".to_owned()),
            max_tokens: None,
        }),
        persona: Some("a critic".to_owned()),
        tool_filter: Some(ToolFilterConfig {
            allow: None,
            deny: deny.clone(),
        }),
        max_depth: MaxDepth::Limit(1),
        ..ToolSubagentConfig::new("helper")
    };
    rig.install(config);
    rig.call("configured", args()).await;
    let full = provider.requests().remove(1);
    assert_eq!(
        full.model,
        Some(ModelRoute {
            provider: Some("deepseek".to_owned()),
            model: Some("chat".to_owned()),
            max_tokens: None,
        })
    );
    assert_eq!(full.persona.as_deref(), Some("a critic"));
    assert_eq!(full.tool_filter, Some(ToolFilter { allow: None, deny }));
    assert_eq!(full.max_depth, Some(1));

    let managed = ToolSubagentConfig {
        tool_name: "managed".to_owned(),
        max_depth: MaxDepth::ProviderManaged,
        ..ToolSubagentConfig::new("helper")
    };
    rig.install(managed);
    rig.call("managed", args()).await;
    assert_eq!(provider.requests().remove(2).max_depth, None);
}

#[tokio::test]
async fn s35_nobody_in_particular_cannot_delegate() {
    let (rig, provider) = Rig::with(Script::default());
    let ctx = ToolContext {
        caller: None,
        token: CancellationToken::new(),
        call_id: CallId::new("call-1"),
    };
    let result = rig.tools.execute("subagent", args(), ctx).await;
    assert_eq!(
        result.single_text(),
        Some("Error: subagent tool requires a calling agent (exec.agent was undefined)")
    );
    assert_eq!(provider.starts(), 0);
}

#[tokio::test]
async fn s25_a_forced_background_is_refused_where_it_is_switched_off() {
    let rig = Rig::new();
    let provider = rig.provide("helper", Script::default());
    rig.install(ToolSubagentConfig {
        enable_run_in_background: false,
        ..ToolSubagentConfig::new("helper")
    });
    assert_eq!(
        rig.call("subagent", background()).await,
        "Error: run_in_background is disabled for this tool instance (enable_run_in_background: false)"
    );
    assert_eq!(provider.starts(), 0);
    assert_eq!(rig.foreground().await, "scripted reply");
}

#[tokio::test]
async fn s63_without_a_registry_only_the_background_is_refused() {
    let rig = Rig::new();
    let provider = rig.provide("helper", Script::default());
    let mut deps = rig.deps();
    deps.tasks = None;
    install(&rig.scope, deps, ToolSubagentConfig::new("helper")).unwrap();
    assert_eq!(
        rig.call("subagent", background()).await,
        "Error: background tasks unavailable: load dsh-tasks and dsh-tool-tasks"
    );
    assert_eq!(provider.starts(), 0);
    assert_eq!(rig.foreground().await, "scripted reply");
}

#[tokio::test]
async fn arguments_that_say_nothing_are_refused() {
    let (rig, provider) = Rig::with(Script::default());
    for (args, refusal) in [
        (
            json!({ "description": " ", "prompt": "p" }),
            "Error: invalid description: expected a non-empty string",
        ),
        (
            json!({ "description": "d", "prompt": "" }),
            "Error: invalid prompt: expected a non-empty string",
        ),
        (
            json!({ "prompt": 7 }),
            "Error: invalid arguments: missing required property \"description\"; \"prompt\" must be a string",
        ),
    ] {
        assert_eq!(rig.call("subagent", args).await, refusal);
    }
    assert_eq!(provider.starts(), 0);
}

#[tokio::test]
async fn a_start_that_failed_is_told_in_its_own_words() {
    let script = Script {
        start_fault: Some(StartFailure::new("setup failed").with_rollback("cleanup failed")),
        ..Script::default()
    };
    let (rig, _) = Rig::with(script);
    assert_eq!(rig.foreground().await, "Error: setup failed; cleanup failed");
}

#[tokio::test]
async fn s44_the_calls_token_ends_the_child_and_the_result_waits_for_its_release() {
    let release = Gate::new();
    let script = Script {
        run_gate: Some(Gate::new()),
        release_gate: Some(release.clone()),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let token = CancellationToken::new();
    let mut call = tokio_test::task::spawn(rig.execute("subagent", args(), token.clone()));
    assert!(call.poll().is_pending());
    eventually("the child", || provider.running() == 1).await;
    token.cancel();
    eventually("the abort", || provider.aborts() == 1).await;
    assert!(call.poll().is_pending(), "the child is not gone yet");
    release.open();
    let result = call.await;
    assert!(result.is_error);
    assert_eq!(
        (provider.aborts(), provider.releases(), provider.running()),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn s45_sl5_a_call_that_is_over_before_it_begins_starts_nothing() {
    let (rig, provider) = Rig::with(Script::default());
    for args in [args(), background()] {
        let token = CancellationToken::new();
        token.cancel();
        let result = rig.execute("subagent", args, token).await;
        assert_eq!(
            result.single_text(),
            Some("Error: tool call aborted before dispatch")
        );
    }
    assert_eq!(provider.starts(), 0);
    assert!(rig.tasks.list(Some(rig.parent.agent())).is_empty());
}

#[tokio::test]
async fn a_call_that_is_dropped_releases_its_child_wherever_it_stands() {
    let (start, run, release) = (Gate::new(), Gate::new(), Gate::new());
    let script = Script {
        start_gate: Some(start.clone()),
        run_gate: Some(run),
        release_gate: Some(release.clone()),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let published = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&published);
    let observer = move |event: &SubagentEvent| {
        seen.fetch_or(matches!(event, SubagentEvent::Started(_)), Ordering::Relaxed);
        Ok(())
    };
    rig.subagents.observe(&rig.scope, Arc::new(observer)).unwrap();
    let call = || rig.execute("subagent", args(), CancellationToken::new());
    // In the start.
    let mut starting = tokio_test::task::spawn(call());
    assert!(starting.poll().is_pending());
    eventually("the start", || provider.starts() == 1).await;
    drop(starting);
    eventually("its end", || provider.requests()[0].token.is_cancelled()).await;
    // In the run.
    start.open();
    let mut running = tokio_test::task::spawn(call());
    assert!(running.poll().is_pending());
    eventually("the call to have it", || {
        assert!(running.poll().is_pending());
        published.load(Ordering::Relaxed)
    })
    .await;
    drop(running);
    release.open();
    eventually("its release", || provider.releases() == 1).await;
    assert_eq!((provider.aborts(), provider.running()), (1, 0));
}

#[tokio::test]
async fn sl1_two_children_overlap() {
    let gate = Gate::new();
    let script = Script {
        run_gate: Some(gate.clone()),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let both = async { tokio::join!(rig.foreground(), rig.foreground()) };
    let open = async {
        eventually("two children at once", || provider.running() == 2).await;
        gate.open();
    };
    let (answers, ()) = tokio::join!(both, open);
    assert_eq!(
        answers,
        ("scripted reply".to_owned(), "scripted reply".to_owned())
    );
}
