//! Several runs, and several providers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dsh_subagent::{StartError, StopReason, SubagentEvent};
use dsh_subagent_codex::{CodexConfig, PermissionMode};
use tokio_util::sync::CancellationToken;

use crate::played::{Room, diagnostic};

#[tokio::test]
async fn s154_two_providers_have_an_environment_and_a_life_of_their_own() {
    let room = Room::bare(
        "begin; echo > \"ready-$NAME\"; until [ -e \"go-$NAME\" ]; do sleep 0.01; done; message \"I am $NAME\"; completed; listen",
    );
    let named = |name: &str| CodexConfig {
        provider_name: name.to_owned(),
        env: BTreeMap::from([("NAME".to_owned(), name.into())]),
        ..CodexConfig::default()
    };
    let first = room.install(named("first"));
    room.install(named("second"));
    let events = Arc::new(Mutex::new((0, 0)));
    let counted = Arc::clone(&events);
    let count = move |event: &SubagentEvent| {
        let mut counted = counted.lock().expect("no panic");
        match event {
            SubagentEvent::Started(_) => counted.0 += 1,
            SubagentEvent::Ended { .. } => counted.1 += 1,
            SubagentEvent::ProviderAdded { .. } | SubagentEvent::ProviderRemoved { .. } => {}
        }
        Ok(())
    };
    room.subagents
        .observe(&room.scope, Arc::new(count))
        .expect("it lives");

    let token = CancellationToken::new();
    let one = room
        .subagents
        .start("first", room.request(&token))
        .await
        .expect("it starts");
    let other = CancellationToken::new();
    let two = room
        .subagents
        .start("second", room.request(&other))
        .await
        .expect("it starts");
    for name in ["first", "second"] {
        room.made(&format!("ready-{name}")).await;
    }
    first.dispose().await;
    let refused = room.subagents.start("first", room.request(&token)).await;
    assert!(matches!(refused, Err(StartError::NoProvider(name)) if name == "first"));
    token.cancel();
    assert_eq!(one.result().await.expect("a result").stop, StopReason::Aborted);
    room.make("go-second");
    assert_eq!(two.result().await.expect("a result").text(), "I am second");
    one.dispose().await.expect("nothing is left");
    two.dispose().await.expect("nothing is left");
    room.assert_empty();
    let balanced = || *events.lock().expect("no panic") == (2, 2);
    dsh_testkit::eventually("every start to have its end", balanced).await;
}

#[tokio::test]
async fn s199_six_runs_at_once_keep_their_answers_and_ids() {
    let room = Room::new(
        "begin; case $frame in *'task 0'*) n=0;; *'task 1'*) n=1;; *'task 2'*) n=2;; *'task 3'*) n=3;; *'task 4'*) n=4;; *) n=5;; esac\n\
                          echo > \"ready-$n\"; until [ -e go ]; do sleep 0.01; done; message \"answer $n\"; completed; listen",
    );
    let mut runs = Vec::new();
    for n in 0..6 {
        let mut request = room.request(&CancellationToken::new());
        request.prompt = vec![dsh_llm::ContentBlock::text(format!("task {n}"))];
        runs.push(room.subagents.start("codex", request).await.expect("it starts"));
    }
    for n in 0..6 {
        room.made(&format!("ready-{n}")).await;
    }
    room.make("go");
    for (n, run) in runs.iter().enumerate() {
        assert_eq!(
            run.result().await.expect("a result").text(),
            format!("answer {n}")
        );
        run.dispose().await.expect("nothing is left");
    }
    let mut ids: Vec<&str> = runs.iter().map(|run| run.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6);
    room.assert_empty();
}

#[tokio::test]
async fn s200_each_provider_has_its_mode_and_tells_it() {
    let asks = r#"{"id":7,"method":"item/tool/requestUserInput","params":{"threadId":"thread-1","turnId":"turn-1"}}"#;
    let room = Room::bare(&format!("begin; say '{asks}'; hear; failed '\"other\"'; listen"));
    let modes = [
        PermissionMode::Never,
        PermissionMode::ApproveForMe,
        PermissionMode::DangerouslyBypassApprovalsAndSandbox,
    ];
    let mut runs = Vec::new();
    for mode in modes {
        room.install(CodexConfig {
            provider_name: mode.as_str().to_owned(),
            permission_mode: mode,
            ..CodexConfig::default()
        });
        let request = room.request(&CancellationToken::new());
        runs.push(
            room.subagents
                .start(mode.as_str(), request)
                .await
                .expect("it starts"),
        );
    }
    for (mode, run) in modes.iter().zip(&runs) {
        let result = run.result().await.expect("a result");
        let mode = format!("(mode: {}; request: user input; ", mode.as_str());
        assert!(diagnostic(&result).contains(&mode), "{result:?}");
        run.dispose().await.expect("nothing is left");
    }
}
