//! A parent that goes while its child works.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent::{AgentRegistry, AgentSpec};
use dsh_scope::{Scope, within};
use dsh_session::SessionId;
use dsh_subagent::{
    Run, RunParts, StartFailure, StartRequest, StopReason, SubagentEvent, SubagentProvider, SubagentRegistry,
};
use tokio_util::sync::CancellationToken;

/// Its work has no end of its own, and does not look at its token.
struct Endless;

#[async_trait]
impl SubagentProvider for Endless {
    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        Run::publish(RunParts {
            id: "child".to_owned(),
            local: None,
            parent: request.parent,
            token: request.token,
            work: pending(),
            release: async { Ok(()) },
        })
        .await
    }
}

#[tokio::test]
async fn the_end_of_a_parent_releases_a_run_that_is_observed() {
    let scope = Scope::root("test");
    let subagents = SubagentRegistry::new();
    subagents
        .register(&scope, "endless", Arc::new(Endless))
        .expect("a provider");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let stops = Arc::clone(&seen);
    let listener = move |event: &SubagentEvent| {
        if let SubagentEvent::Ended { stop, .. } = event {
            stops.lock().expect("nobody panics").push(stop.clone());
        }
        Ok(())
    };
    subagents.observe(&scope, Arc::new(listener)).expect("a listener");
    let spec = AgentSpec {
        id: SessionId::new("parent"),
        cwd: None,
        within: scope.clone(),
    };
    let parent = AgentRegistry::new().create(spec).expect("a new id");
    let task = StartRequest::new("task", parent.agent().clone(), CancellationToken::new());
    let run = subagents.start("endless", task).await.expect("it starts");

    let disposed = within(Duration::from_secs(10), parent.dispose()).await;
    disposed.expect("the parent waits for nobody").expect("it goes");
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    assert_eq!(*seen.lock().expect("nobody panics"), [StopReason::Aborted]);
    run.dispose().await.expect("nothing is left");
}
