//! From a request to a child, or to nothing.

use std::sync::{Arc, Mutex};

use dsh_agent::ModelRoute;
use dsh_session::{Session, SessionHeader, SessionId};
use dsh_subagent::{Capabilities, MAX_DEPTH, ParentContext, StartRequest, SubagentEvent, ToolFilter};
use dsh_subagent_inprocess::{InProcessConfig, InstallError, Origin, install};
use dsh_testkit::Gate;

use crate::nursery::Nursery;

#[tokio::test]
async fn s71_a_start_is_over_when_the_child_is_registered_and_it_is_its_parents() {
    let nursery = Nursery::new();
    let (run, mut child) = nursery.spawn().await;
    let id = SessionId::new(run.id());
    let found = nursery.agents.get(&id).expect("it is registered");
    let local = run.local_agent().expect("it is in this process");
    assert_eq!(found.instance(), local.instance());
    let header = child.agent.session().header().clone();
    assert_eq!(header.id, id);
    // s112, s115, s125: of its own session, one deeper, in the same place.
    assert_eq!(header.parent_session, Some(SessionId::new("parent")));
    assert_eq!((header.delegation_depth, header.seed_length), (1, 0));
    assert_eq!(header.cwd.as_deref(), nursery.parent().cwd());
    assert_eq!(header.preset.as_deref(), Some("code"));
    assert_eq!(child.says("done").await, ["the task"]);
    drop(child);
    assert_eq!(run.result().await.expect("a result").text(), "done");
    run.dispose().await.expect("it goes");
    run.dispose().await.expect("it went");
    assert!(nursery.agents.get(&id).is_none());
    nursery.close().await;
}

#[tokio::test]
async fn s73_s116_a_child_that_would_stand_too_deep_is_not_made() {
    let nursery = Nursery::new();
    let mut request = nursery.request();
    request.max_depth = Some(0);
    let error = nursery.start("spawn", request).await.expect_err("too deep");
    assert_eq!(error.to_string(), "subagent depth 1 exceeds max_depth 0");
    nursery.assert_childless();

    let deepest = Session::with_header(SessionHeader {
        delegation_depth: MAX_DEPTH,
        ..SessionHeader::new(SessionId::new("parent"), None)
    });
    let nursery = Nursery::of(deepest);
    let error = nursery.start("spawn", nursery.request()).await;
    assert_eq!(
        error.expect_err("no number for it").to_string(),
        "subagent child depth exceeds the safe-integer range"
    );
    nursery.assert_childless();
    nursery.close().await;
}

#[tokio::test]
async fn s74_s119_a_request_that_was_cancelled_makes_nobody() {
    let nursery = Nursery::new();
    let request = nursery.request();
    request.token.cancel();
    let error = nursery.start("spawn", request).await.expect_err("cancelled");
    assert_eq!(
        error.to_string(),
        "subagent request was aborted before child publication"
    );
    nursery.assert_childless();
    nursery.close().await;
}

#[tokio::test]
async fn s76_s135_a_tool_that_nobody_has_cannot_be_filtered() {
    let nursery = Nursery::new();
    for filter in [
        ToolFilter {
            allow: Some(vec!["echo".to_owned(), "nonsense".to_owned()]),
            deny: None,
        },
        ToolFilter {
            allow: None,
            deny: Some(vec!["nonsense".to_owned()]),
        },
    ] {
        let mut request = nursery.request();
        request.tool_filter = Some(filter);
        let error = nursery.start("spawn", request).await.expect_err("no such tool");
        assert_eq!(error.to_string(), "unknown global tool \"nonsense\"");
        nursery.assert_childless();
    }
    nursery.close().await;
}

#[tokio::test]
async fn s77_s120_a_cancellation_before_the_publication_takes_the_child_back_unseen() {
    let nursery = Nursery::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&seen);
    nursery
        .subagents
        .observe(
            &nursery.scope,
            Arc::new(move |event: &SubagentEvent| {
                events.lock().expect("no panic").push(event.name());
                Ok(())
            }),
        )
        .expect("an observer");
    let request = nursery.request();
    let (token, gone) = (request.token.clone(), Gate::new());
    let told = gone.clone();
    nursery.before_publication(move |child| async move {
        token.cancel();
        let tell = move || async move { told.open() };
        child.scope().effect("gone", tell).expect("it lives");
    });
    let error = nursery.start("spawn", request).await;
    assert_eq!(
        error.expect_err("cancelled").to_string(),
        "subagent request was aborted before child publication"
    );
    assert!(gone.is_open(), "the child was disposed");
    assert!(seen.lock().expect("no panic").is_empty());
    nursery.close().await;
}

#[tokio::test]
async fn s111_the_start_is_told_when_the_child_is_there() {
    let nursery = Nursery::new();
    let (agents, seen) = (nursery.agents.clone(), Arc::new(Mutex::new(Vec::new())));
    let events = Arc::clone(&seen);
    let listener = move |event: &SubagentEvent| {
        if let SubagentEvent::Started(run) = event {
            let local = run.local.clone().expect("it is in this process");
            assert_eq!(local.as_str(), run.id);
            events
                .lock()
                .expect("no panic")
                .push(agents.get(&local).is_some());
        }
        Ok(())
    };
    nursery
        .subagents
        .observe(&nursery.scope, Arc::new(listener))
        .expect("an observer");
    let _kept = nursery.spawn().await;
    assert_eq!(*seen.lock().expect("no panic"), [true]);
    drop(_kept);
    nursery.close().await;
}

#[tokio::test]
async fn s126_s133_model_and_persona_of_a_request_reach_whoever_makes_the_child() {
    let nursery = Nursery::new();
    let route = ModelRoute {
        model: Some("small".to_owned()),
        ..ModelRoute::default()
    };
    let request = StartRequest {
        model: Some(route.clone()),
        persona: Some("You are terse.".to_owned()),
        ..nursery.request()
    };
    let (_run, child) = nursery.spawn_for(request).await;
    assert_eq!(
        (&child.model, child.persona.as_deref()),
        (&route, Some("You are terse."))
    );
    assert!(child.instructions.is_empty());
    drop(child);
    let (_run, child) = nursery.spawn().await;
    assert_eq!((&child.model, &child.persona), (&ModelRoute::default(), &None));
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s127_s146_both_can_do_everything_and_only_a_fork_knows_its_parent() {
    let nursery = Nursery::new();
    assert_eq!(nursery.subagents.names(), ["spawn", "fork"]);
    let info = |name| nursery.subagents.info(name).expect("it is there");
    for name in ["spawn", "fork"] {
        assert_eq!(info(name).capabilities, Capabilities::ALL);
    }
    assert_eq!(info("spawn").context, ParentContext::Fresh);
    assert_eq!(info("fork").context, ParentContext::CompletedTurns);
    nursery.close().await;
}

#[tokio::test]
async fn s128_s130_s131_an_unloaded_provider_starts_nobody_and_leaves_its_runs() {
    let nursery = Nursery::new();
    let config = InProcessConfig {
        provider_name: Some("mine".to_owned()),
    };
    let installed = install(&nursery.scope, nursery.deps(), Origin::Spawn, &config).expect("a new name");
    let run = nursery.start("mine", nursery.request()).await.expect("it starts");
    let mut child = nursery.born();
    installed.dispose().await;
    let refused = nursery.start("mine", nursery.request()).await.expect_err("gone");
    assert_eq!(refused.code(), Some("NO_PROVIDER"));
    child.says("done all the same").await;
    drop(child);
    assert_eq!(run.result().await.expect("a result").text(), "done all the same");
    run.dispose().await.expect("it goes");
    nursery.close().await;
}

#[tokio::test]
async fn a_provider_has_a_name_of_its_own() {
    let nursery = Nursery::new();
    let installs = |name: Option<&str>| {
        let config = InProcessConfig {
            provider_name: name.map(str::to_owned),
        };
        install(&nursery.scope, nursery.deps(), Origin::Fork, &config)
    };
    assert!(matches!(installs(Some("")), Err(InstallError::NoName)));
    let taken = installs(None).expect_err("there is one");
    assert_eq!(
        taken.to_string(),
        "a subagent provider named \"fork\" is already registered"
    );
    nursery.close().await;
}

#[tokio::test]
async fn s134_a_child_has_the_tools_that_its_filter_leaves() {
    let nursery = Nursery::new();
    let tools = nursery.tools.clone();
    let names = |agent: &dsh_agent::Agent| {
        let definitions = tools.definitions_for(agent).into_iter();
        definitions.map(|tool| tool.name).collect::<Vec<_>>()
    };
    let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    for (allow, deny, expected) in [
        (None, list(&["echo"]), &[][..]),
        (list(&[]), None, &[]),
        (list(&["echo"]), None, &["echo"]),
        (None, list(&[]), &["echo"]),
        (list(&["echo"]), list(&["echo"]), &[]),
    ] {
        let mut request = nursery.request();
        request.tool_filter = Some(ToolFilter { allow, deny });
        let (run, mut child) = nursery.spawn_for(request).await;
        assert_eq!(names(&child.agent), expected);
        assert_eq!(names(nursery.parent()), ["echo"], "the parent keeps its own");
        let nursery = &nursery;
        child
            .turn(async |doing| {
                let said = doing.call(&nursery.tools, "echo", serde_json::json!({})).await;
                assert_eq!(said.contains("unknown tool"), expected.is_empty(), "{said}");
                doing.say("done");
                dsh_session::TurnEnd::Completed
            })
            .await;
        drop(child);
        assert_eq!(run.result().await.expect("a result").text(), "done");
        run.dispose().await.expect("it goes");
    }
    nursery.close().await;
}

#[tokio::test]
async fn s136_s137_a_parent_that_goes_has_no_child() {
    let nursery = Nursery::new();
    let (scope, parent, gone) = (nursery.scope.clone(), nursery.parent().clone(), Gate::new());
    let told = gone.clone();
    nursery.before_publication(move |child| async move {
        let tell = move || async move { told.open() };
        child.scope().effect("gone", tell).expect("it lives");
        let goes = parent.clone();
        let closing = async move { goes.scope().close().await.expect("it closes") };
        scope.spawn("closing", closing).expect("it is open");
        parent.scope().token().cancelled().await;
    });
    nursery
        .start("spawn", nursery.request())
        .await
        .expect_err("the parent goes");
    gone.opened().await;
    nursery
        .start("spawn", nursery.request())
        .await
        .expect_err("the parent is gone");
    nursery.close().await;
}
