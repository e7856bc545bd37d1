//! Starts: what is refused, and what becomes of one that nobody awaits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_subagent::{
    Capabilities, DepthError, MAX_DEPTH, RunResult, StartError, StartFailure, StartRequest, ToolFilter,
    check_max_depth, child_depth,
};
use dsh_testkit::{Gate, eventually};
use serde_json::json;

use crate::rig::{Fake, Rig, counted, publish, until_cancelled};

#[tokio::test]
async fn s4_s5_s6_s7_what_a_provider_cannot_do_is_refused_before_it_hears_of_it() {
    let nothing = Fake::deaf().that_can(Capabilities::NONE);
    let rig = Rig::with(&nothing);
    // Each asks for one thing less than the one before: the first that is missing is named.
    let mut request = StartRequest {
        output_schema: Some(json!({ "type": "string" })),
        max_depth: Some(u64::MAX),
        tool_filter: Some(ToolFilter::default()),
        persona: Some(String::new()),
        ..rig.request()
    };
    type Less = fn(&mut StartRequest);
    let less: [(&str, Less); 4] = [
        ("outputSchema", |request| request.output_schema = None),
        ("depthLimit", |request| request.max_depth = None),
        ("toolFilter", |request| request.tool_filter = None),
        ("persona", |request| request.persona = None),
    ];
    for (capability, less) in less {
        let refused = rig.subagents.start("fake", request.clone()).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("subagent provider \"fake\" does not support the \"{capability}\" capability")
        );
        assert_eq!(refused.code(), Some("UNSUPPORTED_CAPABILITY"));
        less(&mut request);
    }
    assert_eq!(nothing.starts(), 0);
}

#[tokio::test]
async fn s8_a_limit_that_is_none_and_a_schema_that_cannot_be_held_come_next() {
    let fake = Fake::saying("done");
    let rig = Rig::with(&fake);
    let request = StartRequest {
        max_depth: Some(MAX_DEPTH + 1),
        output_schema: Some(json!({ "type": "string" })),
        ..rig.request()
    };
    let refused = rig.subagents.start("fake", request.clone()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "subagent max_depth must be a non-negative safe integer"
    );
    let request = StartRequest {
        max_depth: None,
        ..request
    };
    let refused = rig.subagents.start("fake", request).await.unwrap_err();
    assert!(refused.to_string().starts_with("unsupported output schema: "));
    assert_eq!(fake.starts(), 0);
    assert_eq!(check_max_depth(MAX_DEPTH), Ok(()));
    let run = rig.start().await.unwrap();
    run.dispose().await.unwrap();
}

#[tokio::test]
async fn depth_counts_from_the_parents_session() {
    let rig = Rig::new();
    let parent = rig.parent.agent();
    assert_eq!(child_depth(parent, None), Ok(1));
    assert_eq!(child_depth(parent, Some(1)), Ok(1));
    let refused = child_depth(parent, Some(0)).unwrap_err();
    assert_eq!(refused, DepthError::Exceeded { depth: 1, max: 0 });
    assert_eq!(refused.to_string(), "subagent depth 1 exceeds max_depth 0");
    let header = dsh_session::SessionHeader {
        delegation_depth: MAX_DEPTH,
        ..dsh_session::SessionHeader::new(dsh_session::SessionId::new("deep"), None)
    };
    let session = dsh_session::Session::with_header(header);
    let deep = dsh_agent::AgentRegistry::new()
        .create_with(session, rig.scope.clone())
        .unwrap();
    assert_eq!(
        child_depth(deep.agent(), None).unwrap_err().to_string(),
        "subagent child depth exceeds the safe-integer range"
    );
}

#[tokio::test]
async fn s11_a_failed_start_is_told_to_the_caller_alone() {
    let fake = Fake::new(|_| async {
        Err(StartFailure::new("setup failed")
            .with_rollback("cleanup failed")
            .caused_by("/private/secret.txt"))
    });
    let rig = Rig::with(&fake);
    let heard = rig.hear(&rig.scope);
    let StartError::Provider(failure) = rig.start().await.unwrap_err() else {
        panic!("another refusal");
    };
    assert_eq!(failure.to_string(), "setup failed; cleanup failed");
    assert_eq!(failure.rollback(), Some("cleanup failed"));
    assert_eq!(
        std::error::Error::source(&failure).unwrap().to_string(),
        "/private/secret.txt"
    );
    assert!(heard.all().is_empty());
}

#[tokio::test]
async fn a_start_that_panics_is_a_failure() {
    let rig = Rig::with(&Fake::new(|_| async { panic!("made of glass") }));
    let failed = rig.start().await.unwrap_err();
    assert!(failed.to_string().contains("made of glass"), "{failed}");
}

#[tokio::test]
async fn a_parent_that_is_gone_starts_nothing() {
    let fake = Fake::deaf();
    let rig = Rig::with(&fake);
    rig.parent.dispose().await.unwrap();
    assert!(rig.start().await.is_err());
    assert_eq!(fake.starts(), 0);
}

/// A provider that publishes when the gate opens, whatever its token says, and counts releases.
fn stubborn(gate: &Gate, releases: &Arc<AtomicUsize>) -> Fake {
    let (gate, releases) = (gate.clone(), Arc::clone(releases));
    Fake::new(move |request| {
        let (gate, releases) = (gate.clone(), Arc::clone(&releases));
        async move {
            gate.opened().await;
            let work = until_cancelled(request.token.clone());
            publish(request, work, counted(releases)).await
        }
    })
}

#[tokio::test]
async fn a_start_that_nobody_awaits_any_more_is_cancelled_and_its_child_disposed() {
    let (gate, releases) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let fake = stubborn(&gate, &releases);
    let rig = Rig::with(&fake);
    let heard = rig.hear(&rig.scope);
    let request = rig.request();
    let mut start = tokio_test::task::spawn(rig.subagents.start("fake", request.clone()));
    assert!(start.poll().is_pending());
    eventually("the start", || fake.starts() == 1).await;
    drop(start);
    gate.open();
    eventually("the release", || releases.load(Ordering::Relaxed) == 1).await;
    assert!(!request.token.is_cancelled(), "the caller's own token is its own");
    assert!(heard.all().is_empty(), "nobody ever had this run");
}

#[tokio::test]
async fn a_start_that_is_dropped_with_its_run_on_the_way_disposes_it() {
    let (gate, releases) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let fake = stubborn(&gate, &releases);
    let rig = Rig::with(&fake);
    let mut start = tokio_test::task::spawn(rig.start());
    assert!(start.poll().is_pending());
    gate.open();
    // The run is in the channel, and nobody takes it out.
    eventually("the run to be sent", || start.is_woken()).await;
    drop(start);
    eventually("the release", || releases.load(Ordering::Relaxed) == 1).await;
}

#[tokio::test]
async fn a_parent_that_ends_during_a_start_cancels_it_and_leaves_no_child() {
    let (gate, releases) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let fake = stubborn(&gate, &releases);
    let rig = Rig::with(&fake);
    let mut start = tokio_test::task::spawn(rig.start());
    assert!(start.poll().is_pending());
    eventually("the start", || fake.starts() == 1).await;
    let mut disposal = tokio_test::task::spawn(rig.parent.dispose());
    assert!(disposal.poll().is_pending());
    eventually("the disposal", || rig.parent.agent().scope().is_closing()).await;
    gate.open();
    // What it wanted to publish was released on the spot.
    let failed = start.await.unwrap_err();
    assert!(
        failed
            .to_string()
            .starts_with("subagent owner disposed during setup"),
        "{failed}"
    );
    disposal.await.unwrap();
    assert_eq!(releases.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_child_that_could_not_be_published_and_not_be_released_says_both() {
    let gate = Gate::new();
    let opened = gate.clone();
    let fake = Fake::new(move |request| {
        let gate = opened.clone();
        async move {
            gate.opened().await;
            let release = async { Err(dsh_subagent::RunFault::new("reap failed")) };
            publish(request, async { Ok(RunResult::aborted()) }, release).await
        }
    });
    let rig = Rig::with(&fake);
    let mut start = tokio_test::task::spawn(rig.start());
    assert!(start.poll().is_pending());
    eventually("the start", || fake.starts() == 1).await;
    let mut disposal = tokio_test::task::spawn(rig.parent.dispose());
    assert!(disposal.poll().is_pending());
    eventually("the disposal", || rig.parent.agent().scope().is_closing()).await;
    gate.open();
    let StartError::Provider(failure) = start.await.unwrap_err() else {
        panic!("another refusal");
    };
    assert_eq!(failure.rollback(), Some("reap failed"));
    disposal.await.unwrap();
}

#[tokio::test]
async fn the_callers_token_reaches_the_start_and_the_run() {
    let rig = Rig::with(&Fake::new(|request| async move {
        request.token.cancelled().await;
        Err(StartFailure::new("aborted before publication"))
    }));
    rig.provide("quick", &Fake::endless());
    let request = rig.request();
    let mut start = tokio_test::task::spawn(rig.subagents.start("fake", request.clone()));
    assert!(start.poll().is_pending());
    request.token.cancel();
    assert_eq!(start.await.unwrap_err().to_string(), "aborted before publication");
    let request = rig.request();
    let run = rig.subagents.start("quick", request.clone()).await.unwrap();
    request.token.cancel();
    assert_eq!(run.result().await.unwrap(), RunResult::aborted());
    run.dispose().await.unwrap();
}
