//! A start: what is refused before the provider hears of it, then the provider in a task of its own.

use std::sync::Arc;

use dsh_scope::contain_future;
use tokio::sync::oneshot;

use crate::{
    Capabilities, Run, StartError, StartFailure, StartRequest, SubagentProvider, check_max_depth,
    check_output_schema,
};

/// What can be refused, in this order.
pub(crate) fn admit(provider: &str, can: Capabilities, request: &StartRequest) -> Result<(), StartError> {
    let gates = [
        (request.output_schema.is_some(), can.output_schema, "outputSchema"),
        (request.max_depth.is_some(), can.depth_limit, "depthLimit"),
        (request.tool_filter.is_some(), can.tool_filter, "toolFilter"),
        (request.persona.is_some(), can.persona, "persona"),
    ];
    for (asked, can, capability) in gates {
        if asked && !can {
            return Err(StartError::UnsupportedCapability {
                provider: provider.to_owned(),
                capability,
            });
        }
    }
    if let Some(max) = request.max_depth {
        check_max_depth(max)?;
    }
    if let Some(schema) = &request.output_schema {
        check_output_schema(schema)?;
    }
    Ok(())
}

/// Runs the start in a task of its own, so that it comes to its end, and its child to a holder or to its own.
pub(crate) async fn published(
    provider: Arc<dyn SubagentProvider>,
    mut request: StartRequest,
) -> Result<Run, StartFailure> {
    let token = request.token.child_token();
    request.token = token.clone();
    let parent = Arc::clone(&request.parent);
    let (told, started) = oneshot::channel();
    let (cancelled, ending) = (token.clone(), parent.scope().token().clone());
    let start = async move {
        let start = contain_future(provider.start(request));
        tokio::pin!(start);
        let started = tokio::select! {
            started = &mut start => started,
            () = ending.cancelled() => {
                cancelled.cancel();
                start.await
            }
        };
        let started = started.unwrap_or_else(|panicked| Err(StartFailure::new(panicked.to_string())));
        // The caller may go before the message is sent, or with the message in the channel: wherever the guard is dropped
        // then, it disposes the run.
        let _ = told.send(started.map(Run::drop_guard));
    };
    let abandoned = token.drop_guard();
    if let Err(closed) = parent.scope().spawn("subagent start", start) {
        return Err(StartFailure::new(closed.to_string()));
    }
    let started = started
        .await
        .unwrap_or_else(|_| Err(StartFailure::new("the runtime ended during the start")));
    abandoned.disarm();
    started.map(|guard| guard.disarm())
}
