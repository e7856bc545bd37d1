//! The end of an owner's tasks, and of all: claim the report, cancel, wait within a bound, force, drop.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_scope::{ScopeClosed, within};

use crate::{
    core::{Cleanup, Ending, Verdict},
    id::TaskId,
    outcome::{CancelRequest, Outcome},
};

use super::{Shared, kept::Kept};

/// Attaches the cleanup of an owner to its scope, once; refuses for an owner whose scope is closing.
pub(super) fn attach(shared: &Arc<Shared>, owner: &Arc<Agent>, cleanup: Cleanup) -> Result<(), String> {
    match cleanup {
        Cleanup::Attached if !owner.scope().is_closing() => return Ok(()),
        // A closing scope refuses with its own words.
        Cleanup::Attached | Cleanup::Missing => {}
    }
    let (service, instance) = (Arc::downgrade(shared), owner.instance());
    let dispose = move || async move {
        if let Some(shared) = service.upgrade() {
            run(&shared, Ending::Owner(instance)).await;
            shared.registrations.forget_cleanup(instance);
        }
    };
    let handle = owner
        .scope()
        .effect("tasks.ownerCleanup()", dispose)
        .map_err(|refused| ScopeClosed::discard(refused).to_string())?;
    shared.registrations.keep_cleanup(instance, handle);
    Ok(())
}

/// Ends the registry.
pub(super) async fn service(shared: &Arc<Shared>) {
    shared.registrations.silence();
    run(shared, Ending::Service).await;
    // From here on nothing is awaited for producers and listeners; the dispatcher does what is left and ends.
    shared.over.cancel();
    if let Some(dispatcher) = shared.dispatcher.get() {
        dispatcher.finished().await;
    }
    // A dead registry is not to be kept by the scopes of agents that live on.
    for cleanup in shared.registrations.take_cleanups() {
        cleanup.dispose().await;
    }
}

async fn run(shared: &Arc<Shared>, ending: Ending) {
    let (request, live) = shared.ledger.begin(ending);
    for (id, kept) in live {
        cancel(shared, &id, &kept, &request);
    }
    let limit = shared.config.dispose_timeout;
    let idle = shared.until(|ledger| ledger.is_idle(ending));
    if within(limit, idle).await.is_none() {
        tracing::warn!("tasks: waited {limit:?} in vain for what is being disposed; it is given up");
    }
    for (id, kept) in shared.ledger.shut(ending) {
        force(shared, &id, &kept);
    }
    shared.until(|ledger| ledger.is_announced(ending)).await;
    shared.ledger.clear(ending);
}

/// Asks one task to end for a disposal. A hook that refuses ends the record: nothing says that it will ever settle.
pub(super) fn cancel(shared: &Shared, id: &TaskId, kept: &Kept, request: &CancelRequest) {
    let forced = |outcome: Outcome| (outcome.survivors(kept.survivors()), shared.clock.now());
    if let Err(error) = shared.ledger.cancel(id, || kept.cancel(request), forced) {
        tracing::warn!(
            "tasks: cancel of {id} threw during teardown; task record forced failed and work may be orphaned: {error}"
        );
    }
}

fn force(shared: &Shared, id: &TaskId, kept: &Kept) {
    let limit = shared.config.dispose_timeout;
    let mut detail = format!("did not end within {limit:?} of its teardown; work may be orphaned");
    if let Some(known) = kept.live_detail() {
        detail.push_str(&format!(": {known}"));
    }
    let now = shared.clock.now();
    let forced = Outcome::failed()
        .detail(detail.as_str())
        .survivors(kept.survivors());
    if shared.ledger.settle(id, forced, Verdict::Forced, now) {
        tracing::warn!("tasks: {id} {detail}; task record forced failed");
    }
}
