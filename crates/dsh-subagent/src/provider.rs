//! What a provider is.

use async_trait::async_trait;

use crate::{Run, StartFailure, StartRequest};

/// One way to run a child task.
#[async_trait]
pub trait SubagentProvider: Send + Sync + 'static {
    /// What a request may ask for. Asked once, when it is registered.
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    /// What a child knows of its parent's conversation. It says nothing about tools or authority. Asked once, when it is
    /// registered.
    fn context(&self) -> ParentContext {
        ParentContext::Fresh
    }

    /// What a model knows the children as, where they are no agents of this harness: the name of a product. Asked once, when
    /// it is registered.
    fn product(&self) -> Option<&str> {
        None
    }

    /// Starts a child, and returns when all that can fail in that has succeeded: the child is *published*. What fails
    /// later is in the [result](Run::result).
    ///
    /// `request.token` is the one cancellation of the start and of the run.
    ///
    /// # Errors
    ///
    /// A [`StartFailure`] when there is no child: then everything that was made for it is gone, or the failure says that it
    /// is not. A request that was cancelled before the publication is one of these.
    ///
    /// # Cancel safety
    ///
    /// None is asked for: the registry polls it to its end in a task of its own.
    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure>;
}

/// What a request may ask a provider for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// [`output_schema`](StartRequest::output_schema).
    pub output_schema: bool,
    /// [`max_depth`](StartRequest::max_depth).
    pub depth_limit: bool,
    /// [`tool_filter`](StartRequest::tool_filter).
    pub tool_filter: bool,
    /// [`persona`](StartRequest::persona).
    pub persona: bool,
}

/// What a child knows of its parent's conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentContext {
    /// Nothing.
    Fresh,
    /// The turns that were completed before it was started.
    CompletedTurns,
}

impl Capabilities {
    /// Nothing but a task.
    pub const NONE: Self = Self {
        output_schema: false,
        depth_limit: false,
        tool_filter: false,
        persona: false,
    };

    /// Everything.
    pub const ALL: Self = Self {
        output_schema: true,
        depth_limit: true,
        tool_filter: true,
        persona: true,
    };
}
