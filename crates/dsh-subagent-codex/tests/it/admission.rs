//! What is refused before a process is started.

use std::error::Error;

use dsh_agent::AgentSpec;
use dsh_llm::ContentBlock;
use dsh_session::SessionId;
use dsh_subagent::{Capabilities, ParentContext, StartRequest};
use dsh_subagent_codex::{CodexConfig, InstallError, install};
use tokio_util::sync::CancellationToken;

use crate::played::{Room, line, refusal};

fn of_texts(room: &Room, texts: &[&str]) -> StartRequest {
    StartRequest {
        prompt: texts.iter().map(|text| ContentBlock::text(*text)).collect(),
        ..room.request(&CancellationToken::new())
    }
}

#[tokio::test]
async fn s152_a_task_has_text_and_each_block_is_an_input_of_its_own() {
    let room = Room::new("begin; message done; completed; listen");
    for (texts, why) in [
        (
            &[][..],
            "subagent-codex: the one-shot task must contain only text blocks",
        ),
        (
            &["", " \n"],
            "subagent-codex: the one-shot task must not be empty",
        ),
    ] {
        let started = room.subagents.start("codex", of_texts(&room, texts)).await;
        assert_eq!(refusal(started), why);
    }
    room.assert_unstarted();

    let request = of_texts(&room, &["first", "", "last"]);
    let run = room.subagents.start("codex", request).await.expect("it starts");
    assert_eq!(run.result().await.expect("a result").text(), "done");
    run.dispose().await.expect("nothing is left");
    let heard = room.heard();
    let input = heard[3]["params"]["input"].as_array().expect("an array");
    let texts: Vec<&str> = input.iter().filter_map(|block| block["text"].as_str()).collect();
    assert_eq!(texts, ["first", "", "last"]);
}

#[tokio::test]
async fn s153_it_is_offered_until_it_is_taken_away_and_promises_nothing() {
    let room = Room::bare("");
    let offered = room.install(CodexConfig::default());
    let info = room.subagents.info("codex").expect("it is offered");
    assert_eq!(
        (info.capabilities, info.context),
        (Capabilities::NONE, ParentContext::Fresh)
    );
    offered.dispose().await;
    assert_eq!(room.subagents.names(), [""; 0]);
    room.install(CodexConfig::default());
    assert_eq!(room.subagents.names(), ["codex"]);
    room.assert_unstarted();
}

#[tokio::test]
async fn s155_a_name_has_one_provider() {
    let room = Room::new("");
    let config = CodexConfig {
        program: Some("/bin/sh".into()),
        ..CodexConfig::default()
    };
    let refused = install(&room.scope, room.deps(), config).expect_err("taken");
    assert_eq!(
        refused.to_string(),
        "subagent-codex: a subagent provider named \"codex\" is already registered"
    );
    assert_eq!(room.subagents.names(), ["codex"]);
}

#[tokio::test]
async fn s156_what_cannot_be_used_is_not_installed() {
    let room = Room::bare("");
    let config = CodexConfig {
        program: Some("/bin/sh".into()),
        provider_name: String::new(),
        dispose_grace_ms: -1.0,
        ..CodexConfig::default()
    };
    let refused = install(&room.scope, room.deps(), config).expect_err("two faults");
    let InstallError::Config(faults) = refused else {
        panic!("{refused}")
    };
    assert_eq!(Vec::from(faults).len(), 2);
    assert_eq!(room.subagents.names(), [""; 0]);
}

#[tokio::test]
async fn s161_without_a_directory_there_is_no_child() {
    let room = Room::new("");
    let parent = room.agents.create(AgentSpec {
        id: SessionId::new("nowhere"),
        cwd: None,
        within: room.scope.clone(),
    });
    let parent = parent.expect("a new id");
    let request = StartRequest::new("x", parent.agent().clone(), CancellationToken::new());
    assert_eq!(
        refusal(room.subagents.start("codex", request).await),
        "subagent-codex: no working directory for the child — delegate from a parent session that has one"
    );
}

#[tokio::test]
async fn s197_a_request_that_was_cancelled_starts_nothing() {
    let room = Room::new("");
    let token = CancellationToken::new();
    token.cancel();
    let started = room.subagents.start("codex", room.request(&token)).await;
    assert_eq!(
        refusal(started),
        "subagent-codex: request was aborted before app-server startup"
    );
    room.assert_unstarted();
}

#[tokio::test]
async fn s201_where_a_directory_is_none_only_the_source_says_which() {
    let room = Room::new("");
    for cwd in ["/private/secret.txt", "private/SECRET_TOKEN"] {
        let parent = room.agents.create(AgentSpec {
            id: SessionId::new(format!("in {cwd}")),
            cwd: Some(cwd.into()),
            within: room.scope.clone(),
        });
        let parent = parent.expect("a new id");
        let token = CancellationToken::new();
        let request = StartRequest::new("x", parent.agent().clone(), token.clone());
        let failed = room.subagents.start("codex", request.clone()).await;
        let error = failed.as_ref().expect_err("no directory");
        // The error of the registry is that of the provider.
        let cause = error.source().expect("what is behind it").to_string();
        assert!(cause.contains(cwd), "{cause}");
        assert_eq!(
            refusal(failed),
            format!("subagent-codex: {}", line("stage: initialize; category: unknown"))
        );
        token.cancel();
        assert_eq!(
            refusal(room.subagents.start("codex", request).await),
            "subagent-codex: request was aborted before app-server startup"
        );
    }
}
