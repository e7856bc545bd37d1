//! Where tasks are born.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;

use crate::{contain::Contained, entry::EndGuard, lineage::Lineage};

pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Panics where there is no runtime: asked before anything is changed.
pub(crate) fn require_runtime() {
    let _ = Handle::current();
}

pin_project! {
    /// An entry's work, contained. No async block: what is moved into one of those has its place in it twice.
    pub(crate) struct Labelled<F> {
        #[pin]
        work: Contained<F>,
        what: &'static str,
        scope: Arc<str>,
        label: Arc<str>,
        // Dropped last: the work and all that it owned is gone when its end is seen.
        guard: EndGuard,
    }
}

impl<F: Future<Output = ()>> Future for Labelled<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if let Err(panicked) = ready!(this.work.poll(cx)) {
            let (what, scope, label) = (this.what, &**this.scope, &**this.label);
            tracing::error!(scope, label, "{what} panicked: {panicked}");
        }
        Poll::Ready(())
    }
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
    let work = Contained::new(work);
    let labelled = Labelled {
        work,
        what,
        scope,
        label,
        guard,
    };
    spawn(waited_for_by, labelled);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where a task is born: an entry or a closing owns it"
)]
pub(crate) fn spawn(waited_for_by: Lineage, work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(waited_for_by.run(work));
}
