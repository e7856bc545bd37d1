//! What surrounds a tool's body: arguments, panics, aborts, deliveries, limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use dsh_llm::{CallId, ContentBlock};
use dsh_scope::Scope;
use dsh_testkit::{Gate, eventually};
use dsh_tools::{
    Annotations, CallPolicy, Deliveries, Delivery, PendingCall, RegisterError, Review, Tool, ToolContext,
    ToolDefinition, ToolError, ToolOutput, ToolRegistry, ToolResult,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

type Body = Box<dyn Fn(Value, ToolContext) -> BodyFuture + Send + Sync>;
type BodyFuture = std::pin::Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

struct FnTool {
    name: &'static str,
    limit: Option<usize>,
    body: Body,
}

#[async_trait]
impl Tool for FnTool {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.to_owned(),
            description: String::new(),
            input_schema: json!({ "type": "object", "properties": {} }),
            annotations: Annotations::default(),
        }
    }

    fn result_limit(&self, _args: &Value, _caller: Option<&Arc<dsh_agent::Agent>>) -> Option<usize> {
        self.limit
    }

    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        (self.body)(args, ctx).await
    }
}

fn tool<F>(
    name: &'static str,
    limit: Option<usize>,
    body: impl Fn(Value, ToolContext) -> F + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    Arc::new(FnTool {
        name,
        limit,
        body: Box::new(move |args, ctx| Box::pin(body(args, ctx))),
    })
}

fn registry(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> (Scope, ToolRegistry) {
    let scope = Scope::root("test");
    let registry = ToolRegistry::new();
    for tool in tools {
        registry.register(&scope, tool).expect("registered");
    }
    (scope, registry)
}

fn ctx(token: &CancellationToken) -> ToolContext {
    ToolContext {
        caller: None,
        token: token.clone(),
        call_id: CallId::new("call-1"),
    }
}

/// Sets a flag when dropped undelivered.
struct Claim(Arc<AtomicBool>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_result_carries_content_value_and_deliveries() {
    let delivered = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&delivered);
    let (_scope, tools) = registry([tool("ok", None, move |args, _| {
        let counter = Arc::clone(&counter);
        async move {
            Ok(ToolOutput::text("fine")
                .value(args)
                .delivers(Delivery::new(move || {
                    counter.fetch_add(1, Ordering::SeqCst);
                })))
        }
    })]);
    let result = tools
        .execute("ok", json!({ "a": 1 }), ctx(&CancellationToken::new()))
        .await;
    assert_eq!(result.single_text(), Some("fine"));
    assert!(!result.is_error);
    assert_eq!(result.value, Some(json!({ "a": 1 })));
    assert_eq!(
        delivered.load(Ordering::SeqCst),
        0,
        "nothing is delivered before the commit"
    );
    result.deliveries.deliver_all();
    assert_eq!(delivered.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn core50_argument_text_is_parsed_and_empty_text_is_no_arguments() {
    let (_scope, tools) = registry([tool("echo", None, |args, _| async move {
        Ok(ToolOutput::text(args.to_string()))
    })]);
    for (sent, seen) in [
        (json!(""), "{}"),
        (json!("  "), "{}"),
        (json!("{\"a\":1}"), "{\"a\":1}"),
        (json!("{\"a\":"), "\"{\\\"a\\\":\""),
        (json!({ "a": [1] }), "{\"a\":[1]}"),
    ] {
        let result = tools.execute("echo", sent, ctx(&CancellationToken::new())).await;
        assert_eq!(result.single_text(), Some(seen));
    }
}

#[tokio::test]
async fn core42_an_unknown_tool_is_an_error_result() {
    let (_scope, tools) = registry([]);
    let result = tools
        .execute("nope", json!({}), ctx(&CancellationToken::new()))
        .await;
    assert_eq!(result.single_text(), Some("Error: unknown tool \"nope\""));
    assert!(result.is_error);
    assert_eq!(result.error.map(|info| info.code), Some("UNKNOWN_TOOL"));

    let long = "é".repeat(500_000);
    let result = tools
        .execute(&long, json!({}), ctx(&CancellationToken::new()))
        .await;
    let shown = "é".repeat(100);
    let text = format!("Error: unknown tool \"{shown}\"…");
    assert_eq!(result.single_text(), Some(text.as_str()));
}

#[tokio::test]
async fn a_failing_body_is_an_error_result() {
    let (_scope, tools) = registry([tool("bad", None, |_, _| async {
        Err(ToolError::new("no such thing"))
    })]);
    let result = tools
        .execute("bad", json!({}), ctx(&CancellationToken::new()))
        .await;
    assert_eq!(result.single_text(), Some("Error: no such thing"));
    assert!(result.is_error);
    assert_eq!(result.error, None);
}

#[tokio::test]
async fn core42_a_panicking_body_is_an_error_result_and_the_registry_lives_on() {
    let (_scope, tools) = registry([
        tool("boom", None, |_, _| async { panic!("kaboom") }),
        tool("ok", None, |_, _| async { Ok(ToolOutput::text("fine")) }),
    ]);
    let result = tools
        .execute("boom", json!({}), ctx(&CancellationToken::new()))
        .await;
    assert_eq!(
        result.single_text(),
        Some("Error: tool \"boom\" panicked: kaboom")
    );
    assert_eq!(result.error.map(|info| info.code), Some("TOOL_PANICKED"));
    let result = tools
        .execute("ok", json!({}), ctx(&CancellationToken::new()))
        .await;
    assert_eq!(result.single_text(), Some("fine"));
}

#[tokio::test]
async fn an_aborted_call_does_not_enter_the_body() {
    let entered = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&entered);
    let (_scope, tools) = registry([tool("ok", None, move |_, _| {
        flag.store(true, Ordering::SeqCst);
        async { Ok(ToolOutput::text("fine")) }
    })]);
    let token = CancellationToken::new();
    token.cancel();
    let result = tools.execute("ok", json!({}), ctx(&token)).await;
    assert_eq!(
        result.single_text(),
        Some("Error: tool call aborted before dispatch")
    );
    let info = result.error.expect("a named error");
    assert_eq!(
        (info.name, info.code),
        ("AbortError", "TOOL_ABORTED_BEFORE_DISPATCH")
    );
    assert!(!entered.load(Ordering::SeqCst));
}

#[tokio::test]
async fn an_abort_waits_for_the_body_then_replaces_its_result_and_abandons_its_deliveries() {
    let abandoned = Arc::new(AtomicBool::new(false));
    let delivered = Arc::new(AtomicBool::new(false));
    let (entered, release) = (Gate::new(), Gate::new());
    let (_scope, tools) = registry([tool("slow", None, {
        let (abandoned, delivered) = (Arc::clone(&abandoned), Arc::clone(&delivered));
        let (entered, release) = (entered.clone(), release.clone());
        move |_, _| {
            let (claim, delivered) = (Claim(Arc::clone(&abandoned)), Arc::clone(&delivered));
            let (entered, release) = (entered.clone(), release.clone());
            async move {
                entered.open();
                release.opened().await;
                Ok(ToolOutput::text("late")
                    .value(json!(1))
                    .delivers(Delivery::new(move || {
                        delivered.store(true, Ordering::SeqCst);
                        std::mem::forget(claim);
                    })))
            }
        }
    })]);
    let token = CancellationToken::new();
    let mut call = tokio_test::task::spawn({
        let (tools, ctx) = (tools.clone(), ctx(&token));
        async move { tools.execute("slow", json!({}), ctx).await }
    });
    assert!(call.poll().is_pending());
    assert!(entered.is_open());
    token.cancel();
    assert!(call.poll().is_pending(), "the body is awaited");
    release.open();
    let result = call.await;
    assert_eq!(result.single_text(), Some("Error: tool call aborted"));
    assert_eq!(result.error.map(|info| info.code), Some("TOOL_ABORTED"));
    assert_eq!(result.value, None);
    assert!(result.deliveries.is_empty());
    assert!(abandoned.load(Ordering::SeqCst));
    assert!(!delivered.load(Ordering::SeqCst));
}

#[tokio::test]
async fn one_panicking_delivery_does_not_lose_the_next() {
    let delivered = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&delivered);
    let deliveries = vec![
        Delivery::new(|| panic!("first")),
        Delivery::new(move || flag.store(true, Ordering::SeqCst)),
    ];
    Deliveries::from(deliveries).deliver_all();
    assert!(delivered.load(Ordering::SeqCst));
}

#[tokio::test]
async fn the_limit_binds_every_single_text_and_leaves_other_results_alone() {
    let long = "ä".repeat(100);
    let text = long.clone();
    let error = long.clone();
    let two = long.clone();
    let (_scope, tools) = registry([
        tool("text", Some(64), move |_, _| {
            let text = text.clone();
            async move { Ok(ToolOutput::text(text)) }
        }),
        tool("error", Some(64), move |_, _| {
            let error = error.clone();
            async move { Err(ToolError::new(error)) }
        }),
        tool("two", Some(64), move |_, _| {
            let block = ContentBlock::text(two.clone());
            async move {
                Ok(ToolOutput {
                    content: vec![block.clone(), block],
                    ..ToolOutput::default()
                })
            }
        }),
        tool("tiny", Some(8), |_, _| async { panic!("long enough") }),
        tool("exact", Some(5), |_, _| async { Ok(ToolOutput::text("12345")) }),
    ]);
    let token = CancellationToken::new();
    for name in ["text", "error"] {
        let result = tools.execute(name, json!({}), ctx(&token)).await;
        let text = result.single_text().expect("one text");
        assert!(text.len() <= 64, "{text}");
        assert!(text.ends_with("ä\n[result truncated]"), "{text}");
    }
    let result = tools.execute("two", json!({}), ctx(&token)).await;
    assert_eq!(
        result.content,
        vec![ContentBlock::text(long.clone()), ContentBlock::text(long)]
    );
    let result = tools.execute("tiny", json!({}), ctx(&token)).await;
    assert_eq!(result.single_text(), Some("Error: t"));
    let result = tools.execute("exact", json!({}), ctx(&token)).await;
    assert_eq!(result.single_text(), Some("12345"));
}

/// Its limit is there only until its body has run, and panics on request.
struct Fickle {
    ran: AtomicBool,
}

#[async_trait]
impl Tool for Fickle {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "fickle".to_owned(),
            description: String::new(),
            input_schema: json!({ "type": "object", "properties": {} }),
            annotations: Annotations::default(),
        }
    }

    fn result_limit(&self, args: &Value, _caller: Option<&Arc<dsh_agent::Agent>>) -> Option<usize> {
        assert!(args.get("panic").is_none(), "as asked");
        (!self.ran.load(Ordering::SeqCst)).then_some(4)
    }

    async fn call(&self, _args: Value, _ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        self.ran.store(true, Ordering::SeqCst);
        Ok(ToolOutput::text("12345"))
    }
}

#[tokio::test]
async fn the_limit_is_asked_before_the_body_runs() {
    let (_scope, tools) = registry([Arc::new(Fickle {
        ran: AtomicBool::new(false),
    }) as Arc<dyn Tool>]);
    let token = CancellationToken::new();
    let result = tools.execute("fickle", json!({}), ctx(&token)).await;
    assert_eq!(result.single_text(), Some("1234"));
    let result = tools
        .execute("fickle", json!({ "panic": true }), ctx(&token))
        .await;
    assert_eq!(result.single_text(), Some("12345"), "a limit that panics is none");
}

#[tokio::test]
async fn a_name_is_registered_once_and_goes_with_its_scope() {
    let ok = || tool("ok", None, |_, _| async { Ok(ToolOutput::text("fine")) });
    let (scope, tools) = registry([ok(), tool("a", None, |_, _| async { Ok(ToolOutput::text("a")) })]);
    let refused = tools.register(&scope, ok()).map(|_| ()).expect_err("taken");
    assert_eq!(refused, RegisterError::Duplicate("ok".to_owned()));
    let names = |tools: &ToolRegistry| -> Vec<String> {
        tools
            .definitions()
            .into_iter()
            .map(|definition| definition.name)
            .collect()
    };
    assert_eq!(names(&tools), ["a", "ok"]);
    scope.close().await.expect("closed");
    assert_eq!(names(&tools), [""; 0]);
    let refused = tools.register(&scope, ok()).map(|_| ()).expect_err("closed");
    assert!(matches!(refused, RegisterError::ScopeClosed { .. }), "{refused}");
    assert!(tools.get("ok").is_none(), "a refused registration leaves nothing");
}

#[tokio::test]
async fn disposing_one_registration_frees_its_name_while_its_call_goes_on() {
    let (entered, release) = (Gate::new(), Gate::new());
    let scope = Scope::root("test");
    let tools = ToolRegistry::new();
    let effect = tools
        .register(&scope, {
            let (entered, release) = (entered.clone(), release.clone());
            tool("slow", None, move |_, _| {
                let (entered, release) = (entered.clone(), release.clone());
                async move {
                    entered.open();
                    release.opened().await;
                    Ok(ToolOutput::text("done"))
                }
            })
        })
        .expect("registered");
    let call = {
        let (tools, ctx) = (tools.clone(), ctx(&CancellationToken::new()));
        async move { tools.execute("slow", json!({}), ctx).await }
    };
    let dispose = async {
        eventually("the body to be entered", || entered.is_open()).await;
        effect.dispose().await;
        assert!(tools.get("slow").is_none());
        release.open();
    };
    let (result, ()) = tokio::join!(call, dispose);
    assert_eq!(result.single_text(), Some("done"));
}

#[tokio::test]
async fn what_a_body_says_of_its_own_abort_is_told_unless_a_policy_objects_or_is_slow() {
    struct Judge(Option<Review>);

    #[async_trait]
    impl CallPolicy for Judge {
        async fn after(&self, _: &PendingCall, _: &ToolResult) -> Review {
            match &self.0 {
                Some(review) => review.clone(),
                None => std::future::pending().await,
            }
        }
    }

    let blocked = Review::Block {
        feedback: "no".to_owned(),
    };
    for (judge, told) in [
        (Some(Review::Accept), "Error: tool call aborted\nhalf of it"),
        (Some(blocked), "Error: no"),
        (None, "Error: tool call aborted"),
    ] {
        let (scope, tools) = registry([tool("slow", None, |_, ctx| async move {
            ctx.token.cancelled().await;
            Err(ToolError::aborted_after("half of it"))
        })]);
        tools
            .policy(&scope, Arc::new(Judge(judge)))
            .expect("it is registered");
        let token = CancellationToken::new();
        let mut call = tokio_test::task::spawn(tools.execute("slow", json!({}), ctx(&token)));
        assert!(call.poll().is_pending());
        token.cancel();
        assert_eq!(call.await.single_text(), Some(told));
    }
}
