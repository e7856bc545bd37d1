//! What a scope promises, one module for each promise.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails like a test")]

mod close;
mod contain;
mod dispose;
mod dropped;
mod from_within;
mod nesting;
mod tasks;

use std::sync::{Arc, Mutex};

use dsh_testkit::Gate;

/// What happened, in order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// A disposer that says when it begins, waits for the gate and says when it ends.
    fn gated(&self, name: &'static str, gate: &Gate) -> impl AsyncDisposer {
        let (trace, gate) = (self.clone(), gate.clone());
        move || -> BoxFuture {
            Box::pin(async move {
                trace.add(format!("{name} begins"));
                gate.opened().await;
                trace.add(format!("{name} ends"));
            })
        }
    }

    /// A disposer that says its name.
    fn named(&self, name: &'static str) -> impl AsyncDisposer {
        let trace = self.clone();
        move || -> BoxFuture { Box::pin(async move { trace.add(name) }) }
    }
}

type BoxFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

trait AsyncDisposer: FnOnce() -> BoxFuture + Send + 'static {}
impl<D: FnOnce() -> BoxFuture + Send + 'static> AsyncDisposer for D {}

/// Lets everything that can run do so. Current-thread runtimes only: each turn runs what was ready before it.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
