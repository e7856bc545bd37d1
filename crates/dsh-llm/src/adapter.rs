//! Who answers requests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{Chunk, DuplicateAdapter, ModelError, ModelRequest};

/// Answers requests for the models of a provider.
///
/// An adapter tries once: whether a failed request is sent again is decided by whoever sent it, with a
/// [`RetryPolicy`](crate::RetryPolicy).
#[async_trait]
pub trait ModelAdapter: Send + Sync + 'static {
    /// Sends a request. Returns when the answer begins.
    ///
    /// # Errors
    ///
    /// A [`ModelError`] when there will be no answer. A failure can also show later, in the stream, in both ways that
    /// [`ModelStream::next`] has.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, or cancelling the token, closes the connection.
    async fn send(
        &self,
        request: Arc<ModelRequest>,
        token: CancellationToken,
    ) -> Result<Box<dyn ModelStream>, ModelError>;
}

/// An answer that comes in pieces. Dropping it closes the connection.
#[async_trait]
pub trait ModelStream: Send {
    /// The next piece; `None` after [`Chunk::Finish`], or when the stream was cut.
    ///
    /// # Errors
    ///
    /// A failure within the answer; nothing comes after it. An adapter may also report one as
    /// [`FinishReason::Error`](crate::FinishReason::Error) or, when the token was cancelled, as
    /// [`FinishReason::Aborted`](crate::FinishReason::Aborted).
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped call loses no chunk.
    async fn next(&mut self) -> Result<Option<Chunk>, ModelError>;
}

/// The adapters by the name of their provider.
#[derive(Clone, Default)]
pub struct ModelRegistry {
    adapters: BTreeMap<String, Arc<dyn ModelAdapter>>,
}

impl ModelRegistry {
    /// Without adapters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an adapter.
    ///
    /// # Errors
    ///
    /// [`DuplicateAdapter`] when the name is taken.
    pub fn register(
        &mut self,
        provider: impl Into<String>,
        adapter: Arc<dyn ModelAdapter>,
    ) -> Result<(), DuplicateAdapter> {
        let provider = provider.into();
        if self.adapters.contains_key(&provider) {
            return Err(DuplicateAdapter { provider });
        }
        self.adapters.insert(provider, adapter);
        Ok(())
    }

    /// Whether there is no adapter.
    pub fn is_empty(&self) -> bool {
        self.adapters.is_empty()
    }

    /// The adapter of a provider.
    ///
    /// # Errors
    ///
    /// A [`ModelError`] with code `NO_ADAPTER` that names those that there are.
    pub fn get(&self, provider: &str) -> Result<Arc<dyn ModelAdapter>, ModelError> {
        self.adapters.get(provider).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.adapters.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            ModelError::lasting(
                "NO_ADAPTER",
                format!("no model adapter for provider {provider:?} (there is: {known})"),
            )
        })
    }
}

impl fmt::Debug for ModelRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.adapters.keys()).finish()
    }
}
