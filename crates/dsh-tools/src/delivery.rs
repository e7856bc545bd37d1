//! What becomes true once the model has a result.

use std::fmt;

use dsh_scope::contain;

/// Something that becomes true once the model has the result it came with.
///
/// "Has" means: the result was committed to the session log, or written to the client. Whoever commits calls
/// [`deliver`](Delivery::deliver). Dropping it abandons it: the closure is dropped unrun, with all it owns, so
/// that what it owns can undo a claim in its own `Drop`.
#[must_use = "dropping a delivery abandons it"]
pub struct Delivery(Box<dyn FnOnce() + Send + Sync>);

impl Delivery {
    /// A delivery that runs `delivered` when the model has the result.
    pub fn new(delivered: impl FnOnce() + Send + Sync + 'static) -> Delivery {
        Delivery(Box::new(delivered))
    }

    /// The model has the result. A panic of the closure is contained and logged.
    pub fn deliver(self) {
        if let Err(panicked) = contain(self.0) {
            tracing::error!("tools: a delivery panicked: {panicked}");
        }
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Delivery")
    }
}

/// All deliveries of one result, in order.
#[derive(Debug, Default)]
#[must_use = "dropping deliveries abandons them"]
pub struct Deliveries(Vec<Delivery>);

impl Deliveries {
    /// The model has the result: delivers each, in order.
    pub fn deliver_all(self) {
        self.0.into_iter().for_each(Delivery::deliver);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<Delivery>> for Deliveries {
    fn from(deliveries: Vec<Delivery>) -> Deliveries {
        Deliveries(deliveries)
    }
}
