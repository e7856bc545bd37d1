//! Where tasks are born.

use std::{pin::Pin, sync::Arc};

use tokio::runtime::Handle;

use crate::{contain::contain_future, entry::EndGuard, lineage::Lineage};

pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Panics where there is no runtime: asked before anything is changed.
pub(crate) fn require_runtime() {
    let _ = Handle::current();
}

/// Runs an entry's work in a task of its own, contained.
pub(crate) fn run(
    waited_for_by: Lineage,
    what: &'static str,
    scope: Arc<str>,
    label: Arc<str>,
    guard: EndGuard,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let work = contain_future(work);
    spawn(waited_for_by, async move {
        // Dropped last: the work and all that it owned is gone when its end is seen.
        let _guard = guard;
        if let Err(panicked) = work.await {
            tracing::error!(scope = &*scope, label = &*label, "{what} panicked: {panicked}");
        }
    });
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where a task is born: an entry or a closing owns it"
)]
pub(crate) fn spawn(waited_for_by: Lineage, work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(waited_for_by.run(work));
}
