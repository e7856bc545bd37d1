//! What the server does for each request.

use std::borrow::Cow;
use std::sync::Arc;

use dsh_agent::Agent;
use dsh_llm::{CallId, ContentBlock};
use dsh_scope::contain_future;
use dsh_tools::{ToolContext, ToolRegistry};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientNotification, ClientRequest,
    CustomRequest, CustomResult, ErrorCode, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, RequestId, ServerConfig, ServerResult, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, Service};
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::calls::Calls;
use crate::message::shown;
use crate::resources::TaskView;
use crate::watch::{Audience, Subscriptions, Ticks, tell_of_changes};

/// Serves one client, as one agent.
pub(crate) struct Handler {
    pub(crate) info: ServerConfig,
    pub(crate) agent: Arc<Agent>,
    pub(crate) tools: ToolRegistry,
    pub(crate) calls: Calls,
    pub(crate) view: TaskView,
    pub(crate) ticks: Ticks,
    pub(crate) subscriptions: Subscriptions,
}

impl Handler {
    async fn call(&self, name: &str, args: Value, request: &RequestId) -> CallToolResult {
        let id = ours(request);
        let ctx = ToolContext {
            caller: Some(Arc::clone(&self.agent)),
            token: self.calls.token(id),
            call_id: CallId::new(format!("mcp-{id}")),
        };
        let result = self.tools.execute(name, args, ctx).await;
        self.calls.park(id, result.deliveries);
        let content = result.content.into_iter().map(|block| match block {
            ContentBlock::Text { text } => rmcp::model::ContentBlock::text(text),
        });
        // No structured content: clients that get it show it to the model instead of the text, and with the text
        // the notices would be lost.
        match result.is_error {
            true => CallToolResult::error(content.collect()),
            false => CallToolResult::success(content.collect()),
        }
    }

    /// A `tools/call` that the SDK could not read. Wrong arguments are the model's to see, so they are a result.
    async fn call_unread(&self, params: &Value, request: &RequestId) -> Result<CustomResult, ErrorData> {
        let Some(name) = params.get("name").and_then(Value::as_str) else {
            return Err(ErrorData::invalid_params(
                "tools/call needs the \"name\" of a tool, a string",
                None,
            ));
        };
        let args = params.get("arguments").cloned().unwrap_or_default();
        let result = self.call(name, args, request).await;
        let result = serde_json::to_value(result)
            .map_err(|error| ErrorData::internal_error(format!("cannot write the result: {error}"), None))?;
        Ok(CustomResult::new(result))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.info.clone()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools: Result<Vec<Tool>, _> = self
            .tools
            .definitions_for(&self.agent)
            .into_iter()
            .map(|definition| serde_json::to_value(definition).and_then(serde_json::from_value))
            .collect();
        tools
            .map(ListToolsResult::with_all_items)
            .map_err(|error| ErrorData::internal_error(format!("cannot describe a tool: {error}"), None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = Value::Object(request.arguments.unwrap_or_default());
        Ok(self.call(&request.name, args, &context.id).await.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "tools/call" => {
                self.call_unread(&request.params.unwrap_or_default(), &context.id)
                    .await
            }
            method @ ("initialize" | "resources/read" | "resources/subscribe" | "resources/unsubscribe") => {
                Err(ErrorData::invalid_params(
                    format!("cannot read the parameters of {method}"),
                    None,
                ))
            }
            method => Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("unknown method {}", shown(method)),
                None,
            )),
        }
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = params.and_then(|params| params.cursor);
        self.view.list(cursor.as_deref())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![
            TaskView::template(),
        ]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(ReadResourceResult::new(vec![self.view.read(&request.uri)?]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.view.find(&request.uri)?;
        self.subscriptions.add(request.uri);
        // The watcher may have nothing to look at so far, and then only listens.
        self.ticks.tick();
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let stop = self.calls.token(ours(context.sink().id()));
        let audience = Audience::Listener(context.sink().clone());
        tell_of_changes(self.view.clone(), self.ticks.clone(), audience, stop).await;
        Ok(())
    }
}

/// The handler behind its boundary: every request is counted until it is over, and a panic is an answer, too.
pub(crate) struct Guarded {
    pub(crate) handler: Handler,
    pub(crate) running: TaskTracker,
}

impl Service<RoleServer> for Guarded {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let _running = self.running.token();
        contain_future(self.handler.handle_request(request, context))
            .await
            .unwrap_or_else(|panicked| {
                tracing::error!("mcp: a request panicked: {panicked}");
                Err(ErrorData::internal_error(
                    format!("the request panicked: {panicked}"),
                    None,
                ))
            })
    }

    async fn handle_notification(
        &self,
        _: ClientNotification,
        _: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.handler)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.handler)
    }
}

/// The id of ours that the wire gave the request.
fn ours(id: &RequestId) -> i64 {
    match id {
        RequestId::Number(id) => *id,
        // The wire gives numbers only; no request has this one.
        RequestId::String(_) => 0,
    }
}
