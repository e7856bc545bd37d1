//! What is offered, and under which names.

use std::collections::BTreeMap;

use dsh_subagent::{Capabilities, ParentContext, StopReason};
use dsh_subagent_claude_code::ClaudeCodeConfig;

use crate::support::Home;

#[tokio::test]
async fn s218_it_can_nothing_but_a_task_and_goes_with_its_handle() {
    let home = Home::new();
    let offered = home.install(home.config("")).expect("a provider");
    assert_eq!(home.subagents.names(), ["claude-code"]);
    let info = home.subagents.info("claude-code").expect("it is offered");
    assert_eq!(
        (info.capabilities, info.context),
        (Capabilities::NONE, ParentContext::Fresh)
    );
    offered.dispose().await;
    assert_eq!(home.subagents.names(), [""; 0]);
    home.install(home.config("")).expect("and again");
    assert!(!home.was_started(), "offering starts nothing");
}

#[tokio::test]
async fn s219_two_instances_have_their_own_environment_and_one_outlives_the_other() {
    let home = Home::new();
    let named = |name: &str, script: &str| ClaudeCodeConfig {
        provider_name: name.to_owned(),
        env: BTreeMap::from([("WHO".to_owned(), name.into())]),
        ..home.config(script)
    };
    let one = named("one", "up; echo $WHO > who-one; until_made never");
    let offered = home.install(one).expect("one");
    home.install(named("two", "up; until_made go; success \"$WHO\""))
        .expect("two");
    let one = home
        .subagents
        .start("one", home.request())
        .await
        .expect("it starts");
    let two = home
        .subagents
        .start("two", home.request())
        .await
        .expect("it starts");
    home.made("who-one").await;

    offered.dispose().await;
    let refused = home
        .subagents
        .start("one", home.request())
        .await
        .expect_err("unloaded");
    assert_eq!(refused.code(), Some("NO_PROVIDER"));

    home.make("go");
    assert_eq!(two.result().await.expect("a result").text(), "two");
    one.cancel();
    assert_eq!(one.result().await.expect("a result").stop, StopReason::Aborted);
    assert_eq!(home.read("who-one"), "one\n");
    for run in [one, two] {
        run.dispose().await.expect("nothing is left");
    }
    assert!(home.is_gone());
}

#[test]
fn s220_a_name_is_taken_once() {
    let home = Home::of("");
    let error = home.install(home.config("")).expect_err("the name is taken");
    assert_eq!(
        error.to_string(),
        "subagent-claude-code: a subagent provider named \"claude-code\" is already registered"
    );
    assert_eq!(home.subagents.names(), ["claude-code"]);
}

#[test]
fn s222_a_wrong_configuration_offers_nothing() {
    let home = Home::new();
    let config = ClaudeCodeConfig {
        dispose_grace_ms: 0.0,
        ..home.config("")
    };
    let error = home.install(config).expect_err("no grace");
    assert_eq!(
        error.to_string(),
        "subagent-claude-code: dispose_grace_ms must be a positive finite number"
    );
    assert_eq!(home.subagents.names(), [""; 0]);
}
