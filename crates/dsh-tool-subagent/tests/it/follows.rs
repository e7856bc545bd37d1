//! The tool is there exactly while its provider is.

use std::sync::Arc;

use dsh_subagent::{Capabilities, ParentContext, StopReason};
use dsh_testkit::{LogCapture, eventually};
use dsh_tool_subagent::{ToolSubagentConfig, install_for};
use serde_json::json;

use crate::rig::{Rig, args};
use crate::scripted::Script;

fn tool(provider: &str, tool_name: &str) -> ToolSubagentConfig {
    ToolSubagentConfig {
        tool_name: tool_name.to_owned(),
        ..ToolSubagentConfig::new(provider)
    }
}

fn inheriting() -> Script {
    Script {
        context: ParentContext::CompletedTurns,
        ..Script::default()
    }
}

#[tokio::test]
async fn s36_a_tool_that_is_loaded_first_waits_for_its_provider() {
    let log = LogCapture::start();
    let rig = Rig::new();
    rig.install(ToolSubagentConfig::new("late"));
    assert!(rig.tool_names().is_empty());
    assert!(log.contains(
        "subagent provider \"late\" not registered yet; the \"subagent\" tool will register when it appears"
    ));
    rig.provide("late", Script::default());
    assert_eq!(rig.tool_names(), ["subagent"], "as soon as the provider is there");
    assert_eq!(rig.foreground().await, "scripted reply");
}

#[tokio::test]
async fn s37_a_provider_that_comes_back_is_worded_anew() {
    let rig = Rig::new();
    rig.install(ToolSubagentConfig::new("p"));
    let first = rig.scope.child("first").unwrap();
    rig.provide_on(&first, "p", Script::default());
    first.close().await.unwrap();
    rig.until_tools(&[]).await;
    rig.provide("p", inheriting());
    rig.until_tools(&["subagent"]).await;
    let description = rig.tools.definitions().remove(0).description;
    assert!(
        description.contains("inherits this conversation"),
        "{description}"
    );
}

#[tokio::test]
async fn a_provider_that_is_replaced_at_once_is_worded_anew_too() {
    let rig = Rig::new();
    rig.install(ToolSubagentConfig::new("p"));
    for round in 0..20 {
        let scope = rig.scope.child("round").unwrap();
        let script = if round % 2 == 0 {
            Script::default()
        } else {
            inheriting()
        };
        let wording = if round % 2 == 0 {
            "does not see"
        } else {
            "inherits"
        };
        rig.provide_on(&scope, "p", script);
        eventually(wording, || {
            let tools = rig.tools.definitions();
            tools.iter().any(|tool| tool.description.contains(wording))
        })
        .await;
        // The next one may come before the tool has left.
        scope.close().await.unwrap();
    }
    rig.until_tools(&[]).await;
}

#[tokio::test]
async fn s38_uninstalling_takes_the_tool_and_not_the_provider_and_nothing_comes_later() {
    let rig = Rig::new();
    rig.provide("here", Script::default());
    let handle = rig.install(ToolSubagentConfig::new("here"));
    handle.uninstall().await.unwrap();
    assert!(rig.tool_names().is_empty());
    assert_eq!(rig.subagents.names(), ["here"]);
    let again = rig.install(ToolSubagentConfig::new("here"));
    assert_eq!(rig.tool_names(), ["subagent"]);
    again.uninstall().await.unwrap();
    let waiting = rig.install(ToolSubagentConfig::new("late"));
    waiting.uninstall().await.unwrap();
    rig.provide("late", Script::default());
    assert!(rig.tool_names().is_empty());
}

#[tokio::test]
async fn s39_other_providers_are_no_matter_of_the_tool() {
    let rig = Rig::new();
    rig.provide("mine", Script::default());
    rig.install(ToolSubagentConfig::new("mine"));
    let before = rig.tools.definitions();
    let scope = rig.scope.child("other").unwrap();
    rig.provide_on(&scope, "other", inheriting());
    scope.close().await.unwrap();
    assert_eq!(rig.tools.definitions(), before);
}

#[tokio::test]
async fn s31_two_tools_route_to_their_own_providers() {
    let rig = Rig::new();
    let one = rig.provide("one", Script::ends(StopReason::Completed, "of one"));
    let two = rig.provide("two", Script::ends(StopReason::Completed, "of two"));
    rig.install(tool("one", "delegate"));
    rig.install(tool("two", "fork"));
    assert_eq!(rig.tool_names(), ["delegate", "fork"]);
    assert_eq!(rig.call("delegate", args()).await, "of one");
    assert_eq!(rig.call("fork", args()).await, "of two");
    assert_eq!((one.starts(), two.starts()), (1, 1));
}

#[tokio::test]
async fn a_tool_that_cannot_be_mounted_later_is_logged_and_leaves_the_provider_to_others() {
    let log = LogCapture::start();
    let rig = Rig::new();
    rig.install(ToolSubagentConfig::new("late"));
    rig.install(ToolSubagentConfig::new("late"));
    rig.provide("late", Script::default());
    assert_eq!(rig.tool_names(), ["subagent"]);
    assert!(
        log.contains("\"subagent\" is already registered"),
        "{:?}",
        log.lines()
    );
    let incapable = Script {
        capabilities: Capabilities::NONE,
        ..Script::default()
    };
    rig.install(tool("incapable", "other"));
    rig.provide("incapable", incapable);
    assert_eq!(rig.subagents.names(), ["late", "incapable"]);
    assert_eq!(rig.tool_names(), ["subagent"]);
    assert!(log.contains("provider-managed"));
}

#[tokio::test]
async fn a_tool_of_one_agent_is_that_agents_alone_and_goes_with_it() {
    let mut rig = Rig::new();
    let scope = rig.scope.child("provider").unwrap();
    rig.provide_on(&scope, "p", Script::default());
    let other = rig.agent("other");
    install_for(rig.parent.agent(), rig.deps(), ToolSubagentConfig::new("p")).unwrap();
    let tools = rig.tools.clone();
    let has = |agent: &dsh_agent::AgentHandle| !tools.definitions_for(agent.agent()).is_empty();
    assert!(has(&rig.parent) && !has(&other) && rig.tool_names().is_empty());
    assert_eq!(rig.foreground().await, "scripted reply");
    scope.close().await.unwrap();
    eventually("the tool to leave", || !has(&rig.parent)).await;
    rig.provide("p", Script::default());
    assert!(has(&rig.parent));
    let handle = install_for(other.agent(), rig.deps(), ToolSubagentConfig::new("p")).unwrap();
    assert!(has(&other));
    handle.uninstall().await.unwrap();
    assert!(!has(&other), "uninstalled while the agent goes on");
    let gone = Arc::downgrade(rig.parent.agent());
    rig.parent.dispose().await.unwrap();
    drop(std::mem::replace(&mut rig.parent, other));
    assert!(
        gone.upgrade().is_none(),
        "the tool of an agent does not keep the agent"
    );
    assert_eq!(
        rig.call("subagent", json!({})).await,
        "Error: unknown tool \"subagent\""
    );
}
