//! Tools that a model can call: what one is, where they are registered, and what happens around a call.
//!
//! A [`Tool`] has a [`ToolDefinition`] (all that the model sees) and a body. A [`ToolRegistry`] offers tools for as
//! long as the [`Scope`](dsh_scope::Scope) they were registered on, and [`ToolRegistry::execute`] runs a call
//! through the pipeline. A call never fails: unknown tools, wrong arguments, panics and aborts are results, too.
//!
//! # Contract
//!
//! - A failed call reads `Error: <message>`. [`ToolResult::error`] names it for programs: `UNKNOWN_TOOL`,
//!   `INVALID_ARGS`, `TOOL_ABORTED_BEFORE_DISPATCH`, `TOOL_ABORTED`, `TOOL_PANICKED`, `TOOL_TIMEOUT`,
//!   `TOOL_NOT_APPROVED`, `POLICY_PANICKED`.
//! - Cancelling [`ToolContext::token`] asks for an end. The pipeline waits for the body, so that what the body
//!   started is gone when the result comes, then replaces whatever it returned by `tool call aborted`, except what
//!   the body says of the abort itself ([`ToolError::aborted_after`]).
//! - [`ToolResult::deliveries`] hold what becomes true once the model *has* the result. Who commits the result
//!   calls [`Deliveries::deliver_all`]; in every other case they are dropped, which abandons them. A result that
//!   the pipeline replaces abandons its own.
//! - A [`CallPolicy`] can deny a call, have it asked for ([`Approver`]), or replace or block its result; none ships.
//! - One agent can have tools of its own ([`ToolRegistry::register_for`]) and be kept from any
//!   ([`ToolRegistry::restrict`]) but those it was [granted](ToolRegistry::grant).
//! - [`Tool::result_limit`] is asked before the body and applied last, to errors as well.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use dsh_llm::CallId;
//! use dsh_scope::Scope;
//! use dsh_tools::{
//!     Annotations, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ToolRegistry, decode, schema_of,
//! };
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use serde_json::{Value, json};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct GreetArgs {
//!     /// Who to greet.
//!     name: String,
//! }
//!
//! struct Greet;
//!
//! #[async_trait::async_trait]
//! impl Tool for Greet {
//!     fn definition(&self) -> ToolDefinition {
//!         ToolDefinition {
//!             name: "greet".into(),
//!             description: "Greets somebody.".into(),
//!             input_schema: schema_of::<GreetArgs>(),
//!             annotations: Annotations { read_only: Some(true), ..Annotations::default() },
//!         }
//!     }
//!
//!     async fn call(&self, args: Value, _ctx: ToolContext) -> Result<ToolOutput, ToolError> {
//!         let args: GreetArgs = decode(&schema_of::<GreetArgs>(), &args)?;
//!         Ok(ToolOutput::text(format!("hello {}", args.name)))
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let scope = Scope::root("example");
//! let tools = ToolRegistry::new();
//! tools.register(&scope, Arc::new(Greet)).unwrap();
//!
//! let ctx = ToolContext { caller: None, token: Default::default(), call_id: CallId::new("call-1") };
//! let result = tools.execute("greet", json!({ "name": "Ada" }), ctx.clone()).await;
//! assert_eq!(result.single_text(), Some("hello Ada"));
//! result.deliveries.deliver_all();
//!
//! let result = tools.execute("greet", json!({}), ctx).await;
//! assert_eq!(result.single_text(), Some(r#"Error: invalid arguments: missing required property "name""#));
//!
//! scope.close().await.unwrap();
//! assert!(tools.definitions().is_empty());
//! # });
//! ```

mod tool;

mod args;
mod card;
mod delivery;
mod error;
mod layer;
mod limit;
mod pipeline;
mod policy;
mod registry;
mod result;
mod schema;

pub use args::{decode, parse_arguments};
pub use card::{CallCard, CardKind, ResultCard, TerminalExit};
pub use delivery::{Deliveries, Delivery};
pub use error::{ArgsError, ErrorInfo, RegisterError, ToolError};
pub use layer::Restriction;
pub use limit::{RESULT_TRUNCATED, bounded_result, head_within, tail_within};
pub use policy::{Approval, Approver, CallPolicy, PendingCall, Review, Verdict};
pub use registry::ToolRegistry;
pub use result::ToolResult;
pub use schema::schema_of;
pub use tool::{Annotations, Concurrency, Tool, ToolContext, ToolDefinition, ToolOutput};
