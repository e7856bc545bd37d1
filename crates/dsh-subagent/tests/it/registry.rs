//! Providers by name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dsh_subagent::{Capabilities, ParentContext, ProviderInfo, RegisterError, StopReason, SubagentEvent};

use crate::rig::{Fake, Rig};

#[tokio::test]
async fn s1_registered_found_started_and_removed() {
    let rig = Rig::new();
    let heard = rig.hear(&rig.scope);
    let fake = Fake::saying("hello");
    let handle = rig.provide("fake", &fake);
    assert_eq!(rig.subagents.names(), ["fake"]);
    let info = ProviderInfo {
        capabilities: Capabilities::ALL,
        context: ParentContext::Fresh,
        product: None,
    };
    assert_eq!(rig.subagents.info("fake"), Some(info));
    let run = rig.start().await.unwrap();
    let result = run.result().await.unwrap();
    assert_eq!(
        (result.text().as_str(), result.stop),
        ("hello", StopReason::Completed)
    );
    assert_eq!(fake.starts(), 1);
    run.dispose().await.unwrap();
    handle.dispose().await;
    handle.dispose().await;
    let of_providers = |names: Vec<&'static str>| -> Vec<_> {
        let own = names.into_iter().filter(|name| name.starts_with("provider"));
        own.collect()
    };
    assert_eq!(
        of_providers(heard.names()),
        ["provider-added", "provider-removed"]
    );
    assert_eq!(rig.subagents.info("fake"), None);
    assert!(rig.subagents.names().is_empty());
}

#[tokio::test]
async fn s2_an_observer_refuses_a_provider_and_the_others_hear_that_it_went() {
    let rig = Rig::new();
    let early = rig.hear(&rig.scope);
    let refusing = Arc::new(AtomicBool::new(true));
    let refuses = Arc::clone(&refusing);
    let listener = move |event: &SubagentEvent| match event {
        SubagentEvent::ProviderAdded { .. } if refuses.load(Ordering::Relaxed) => Err("not here".into()),
        _ => Ok(()),
    };
    rig.subagents.observe(&rig.scope, Arc::new(listener)).unwrap();
    let late = rig.hear(&rig.scope);
    let refused = rig
        .subagents
        .register(&rig.scope, "fake", Arc::new(Fake::deaf()))
        .unwrap_err();
    assert_eq!((refused.to_string().as_str(), refused.code()), ("not here", None));
    assert!(rig.subagents.names().is_empty());
    for heard in [early, late] {
        assert_eq!(heard.names(), ["provider-added", "provider-removed"]);
    }
    // The name is free, and what is left of the first registration takes nothing of the second.
    refusing.store(false, Ordering::Relaxed);
    let fake = Fake::saying("second");
    rig.provide("fake", &fake);
    let run = rig.start().await.unwrap();
    run.dispose().await.unwrap();
    assert_eq!(fake.starts(), 1);
    rig.parent.dispose().await.unwrap();
    rig.scope.close().await.unwrap();
    assert!(rig.subagents.names().is_empty());
}

#[tokio::test]
async fn s3_the_first_of_a_name_stays_and_an_unknown_name_starts_nothing() {
    let rig = Rig::new();
    let first = Fake::saying("first");
    rig.provide("fake", &first);
    rig.provide("other", &Fake::saying("other"));
    let refused = rig
        .subagents
        .register(&rig.scope, "fake", Arc::new(Fake::saying("second")))
        .unwrap_err();
    assert_eq!(
        (refused.to_string().as_str(), refused.code()),
        (
            "a subagent provider named \"fake\" is already registered",
            Some("DUPLICATE_PROVIDER")
        )
    );
    assert_eq!(rig.subagents.names(), ["fake", "other"]);
    let run = rig.start().await.unwrap();
    assert_eq!(run.result().await.unwrap().text(), "first");
    run.dispose().await.unwrap();
    let absent = rig.subagents.start("absent", rig.request()).await.unwrap_err();
    assert_eq!(
        (absent.to_string().as_str(), absent.code()),
        (
            "no subagent provider registered for \"absent\"",
            Some("NO_PROVIDER")
        )
    );
}

#[tokio::test]
async fn a_scope_that_is_closing_takes_no_provider() {
    let rig = Rig::new();
    let heard = rig.hear(&rig.scope);
    let closed = rig.scope.child("closed").unwrap();
    closed.close().await.unwrap();
    let refused = rig
        .subagents
        .register(&closed, "fake", Arc::new(Fake::deaf()))
        .unwrap_err();
    assert!(matches!(refused, RegisterError::ScopeClosed(_)));
    assert!(rig.subagents.names().is_empty() && heard.all().is_empty());
    assert!(rig.subagents.observe(&closed, Arc::new(|_| Ok(()))).is_err());
}

#[tokio::test]
async fn a_provider_that_goes_leaves_its_runs_to_their_holders() {
    let rig = Rig::new();
    let handle = rig.provide("fake", &Fake::endless());
    let run = rig.start().await.unwrap();
    handle.dispose().await;
    assert!(rig.start().await.is_err());
    let mut result = tokio_test::task::spawn(run.result());
    assert!(result.poll().is_pending());
    run.cancel();
    assert_eq!(result.await.unwrap().stop, StopReason::Aborted);
    run.dispose().await.unwrap();
}
