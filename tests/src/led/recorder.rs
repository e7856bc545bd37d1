//! A model that is asked through somebody who writes down what.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_llm::{ModelAdapter, ModelError, ModelRequest, ModelStream};
use dsh_session::{Enclosure, Event, EventData, TurnEnd, request_at};
use tokio_util::sync::CancellationToken;

/// Hands requests on and keeps them.
pub(super) struct Recorder {
    model: Arc<dyn ModelAdapter>,
    requests: Mutex<Vec<Arc<ModelRequest>>>,
}

impl Recorder {
    pub(super) fn new(model: Arc<dyn ModelAdapter>) -> Recorder {
        Recorder {
            model,
            requests: Mutex::default(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.requests().len()
    }

    pub(super) fn first(&self) -> Arc<ModelRequest> {
        self.requests().first().cloned().expect("the model was asked")
    }

    /// Every request is what the log says it was, and the one before it with something more, unless the header has
    /// changed; and the log is balanced.
    pub(super) fn check(&self, events: &[Event]) {
        let steps = events
            .iter()
            .filter(|event| matches!(event.data, EventData::StepStart { .. }));
        let rebuilt: Vec<ModelRequest> = steps.filter_map(|event| request_at(events, event.seq)).collect();
        let requests = self.requests();
        assert_eq!(rebuilt.len(), requests.len(), "one request for each step");
        for (rebuilt, request) in rebuilt.iter().zip(requests.iter()) {
            assert_eq!(rebuilt, request.as_ref(), "a request is what the log says");
        }
        for pair in requests.windows(2) {
            let (one, next) = (&pair[0], &pair[1]);
            assert!(one.header != next.header || next.messages.starts_with(&one.messages));
        }
        let mut enclosure = Enclosure::default();
        for event in events {
            enclosure.admit(&event.data).expect("the log keeps its rules");
        }
        assert_eq!(enclosure.closers(TurnEnd::Interrupted), [], "something is open");
    }

    fn requests(&self) -> MutexGuard<'_, Vec<Arc<ModelRequest>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ModelAdapter for Recorder {
    async fn send(
        &self,
        request: Arc<ModelRequest>,
        token: CancellationToken,
    ) -> Result<Box<dyn ModelStream>, ModelError> {
        self.requests().push(Arc::clone(&request));
        self.model.send(request, token).await
    }
}
