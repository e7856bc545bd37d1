//! Policies, approval, and the time that a call may take.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent::{Agent, AgentHandle, AgentRegistry, AgentSpec};
use dsh_llm::{CallId, ContentBlock};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_tools::{
    Annotations, Approval, Approver, CallPolicy, Delivery, PendingCall, Review, Tool, ToolContext,
    ToolDefinition, ToolError, ToolOutput, ToolRegistry, ToolResult, Verdict,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Counts its calls; stays until it is cancelled if it is asked to; then even longer if it is deaf.
#[derive(Default)]
struct Work {
    ran: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
    abandoned: Arc<AtomicBool>,
}

struct Sets(Arc<AtomicBool>);

impl Drop for Sets {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl Tool for Work {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "work".to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object", "properties": {}}),
            annotations: Annotations::default(),
        }
    }

    fn result_limit(&self, args: &Value, _: Option<&Arc<Agent>>) -> Option<usize> {
        args.get("limit")?.as_u64()?.try_into().ok()
    }

    fn timeout(&self, args: &Value) -> Option<Duration> {
        args.get("timeout")?.as_u64().map(Duration::from_millis)
    }

    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        self.ran.fetch_add(1, Ordering::SeqCst);
        let _ended = Sets(Arc::clone(&self.ended));
        if args.get("stay").is_some() {
            ctx.token.cancelled().await;
        }
        if args.get("deaf").is_some() {
            std::future::pending::<()>().await;
        }
        let abandoned = Sets(Arc::clone(&self.abandoned));
        Ok(ToolOutput::text("done").delivers(Delivery::new(move || std::mem::forget(abandoned))))
    }
}

/// Says what it was made to say, and remembers what it was asked.
struct Policy {
    verdict: Verdict,
    review: Review,
    reviewed: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl CallPolicy for Policy {
    async fn before(&self, call: &PendingCall) -> Verdict {
        assert_eq!(call.tool, "work");
        self.verdict.clone()
    }

    async fn after(&self, _: &PendingCall, result: &ToolResult) -> Review {
        let text = result.single_text().unwrap_or_default().to_owned();
        self.reviewed.lock().expect("unpoisoned").push(text);
        self.review.clone()
    }
}

struct Panics;

#[async_trait]
impl CallPolicy for Panics {
    async fn before(&self, _: &PendingCall) -> Verdict {
        unreachable!("no idea")
    }
}

struct Answers(Approval);

#[async_trait]
impl Approver for Answers {
    async fn ask(&self, _: &PendingCall) -> Approval {
        self.0
    }
}

/// Decides nothing, or judges nothing.
enum Undecided {
    Before,
    After,
}

#[async_trait]
impl CallPolicy for Undecided {
    async fn before(&self, _: &PendingCall) -> Verdict {
        match self {
            Self::Before => std::future::pending().await,
            Self::After => Verdict::Allow,
        }
    }

    async fn after(&self, _: &PendingCall, _: &ToolResult) -> Review {
        std::future::pending().await
    }
}

/// Panics over the result.
struct PanicsAfter;

#[async_trait]
impl CallPolicy for PanicsAfter {
    async fn after(&self, _: &PendingCall, _: &ToolResult) -> Review {
        unreachable!("{}", "no idea what to make of it ".repeat(9))
    }
}

struct Silent;

#[async_trait]
impl Approver for Silent {
    async fn ask(&self, _: &PendingCall) -> Approval {
        std::future::pending().await
    }
}

struct Room {
    scope: Scope,
    tools: ToolRegistry,
    agent: AgentHandle,
    work: Arc<Work>,
    reviewed: Arc<Mutex<Vec<String>>>,
    token: CancellationToken,
}

impl Room {
    fn new() -> Room {
        let (scope, tools) = (Scope::root("test"), ToolRegistry::new());
        let spec = AgentSpec {
            id: SessionId::new("s"),
            cwd: None,
            within: scope.clone(),
        };
        let agent = AgentRegistry::new().create(spec).expect("a new id");
        let work = Arc::new(Work::default());
        tools.register(&scope, work.clone()).expect("registered");
        Room {
            scope,
            tools,
            agent,
            work,
            reviewed: Arc::default(),
            token: CancellationToken::new(),
        }
    }

    fn policy(&self, verdict: Verdict, review: Review) {
        let reviewed = Arc::clone(&self.reviewed);
        let policy = Policy {
            verdict,
            review,
            reviewed,
        };
        self.tools
            .policy(&self.scope, Arc::new(policy))
            .expect("registered");
    }

    fn approver(&self, approver: impl Approver) {
        self.tools
            .approver(self.agent.agent(), Arc::new(approver))
            .expect("registered");
    }

    async fn call(&self, args: Value) -> ToolResult {
        let ctx = ToolContext {
            caller: Some(self.agent.agent().clone()),
            token: self.token.clone(),
            call_id: CallId::new("c"),
        };
        self.tools.execute("work", args, ctx).await
    }

    fn ran(&self) -> usize {
        self.work.ran.load(Ordering::SeqCst)
    }
}

fn deny(reason: &str) -> Verdict {
    Verdict::Deny {
        reason: reason.to_owned(),
    }
}

fn code(result: &ToolResult) -> Option<&'static str> {
    result.error.map(|error| error.code)
}

#[tokio::test]
async fn core43_a_denied_call_does_not_run_and_nobody_allows_it_again() {
    let room = Room::new();
    room.policy(deny("not on a Monday"), Review::Accept);
    room.policy(Verdict::Allow, Review::Accept);
    let result = room.call(json!({})).await;
    assert_eq!(result.single_text(), Some("Error: not on a Monday"));
    assert!(result.is_error);
    assert_eq!(room.ran(), 0);
    let reviewed = room.reviewed.lock().expect("unpoisoned").clone();
    assert_eq!(
        reviewed, ["Error: not on a Monday"; 2],
        "also what was denied is reviewed"
    );
}

#[tokio::test]
async fn core45_a_blocked_result_is_an_error_that_tells_nothing() {
    let room = Room::new();
    let feedback = "use the other door".to_owned();
    room.policy(Verdict::Allow, Review::Block { feedback });
    let result = room.call(json!({})).await;
    assert_eq!(result.single_text(), Some("Error: use the other door"));
    assert!(result.is_error && result.deliveries.is_empty());
    assert!(room.work.abandoned.load(Ordering::SeqCst));
}

#[tokio::test]
async fn core45_a_replaced_content_tells_what_the_result_told() {
    let room = Room::new();
    room.policy(Verdict::Allow, Review::Replace(vec![ContentBlock::text("short")]));
    let result = room.call(json!({})).await;
    assert_eq!((result.single_text(), result.is_error), (Some("short"), false));
    result.deliveries.deliver_all();
    assert!(!room.work.abandoned.load(Ordering::SeqCst));
}

#[tokio::test]
async fn core42_a_policy_that_panics_is_an_error_result() {
    let room = Room::new();
    room.tools
        .policy(&room.scope, Arc::new(Panics))
        .expect("registered");
    let result = room.call(json!({})).await;
    assert_eq!(code(&result), Some("POLICY_PANICKED"));
    assert_eq!(room.ran(), 0);
}

#[tokio::test]
async fn what_has_to_be_asked_for_is_denied_without_anybody_to_ask() {
    let room = Room::new();
    room.policy(Verdict::Ask, Review::Accept);
    let result = room.call(json!({})).await;
    let text = r#"Error: tool "work" requires approval (nobody can be asked)"#;
    assert_eq!((result.single_text(), room.ran()), (Some(text), 0));
    room.approver(Answers(Approval::Unanswered));
    assert_eq!(room.call(json!({})).await.single_text(), Some(text));
    assert_eq!(room.ran(), 0);
}

#[tokio::test]
async fn the_answer_decides_and_a_denial_comes_before_the_question() {
    let room = Room::new();
    room.policy(Verdict::Ask, Review::Accept);
    room.approver(Answers(Approval::Denied));
    let result = room.call(json!({})).await;
    assert_eq!(
        result.single_text(),
        Some(r#"Error: tool "work" was not approved"#)
    );
    assert_eq!(code(&result), Some("TOOL_NOT_APPROVED"));
    room.approver(Answers(Approval::Allowed));
    assert_eq!(room.call(json!({})).await.single_text(), Some("done"));
    room.policy(deny("never"), Review::Accept);
    assert_eq!(room.call(json!({})).await.single_text(), Some("Error: never"));
    assert_eq!(room.ran(), 1);
}

#[tokio::test]
async fn a_call_that_is_given_up_during_the_question_does_not_run() {
    let room = Room::new();
    room.policy(Verdict::Ask, Review::Accept);
    room.approver(Silent);
    let (result, ()) = tokio::join!(room.call(json!({})), async { room.token.cancel() });
    assert!(result.is_error);
    assert_eq!(room.ran(), 0);
}

#[tokio::test]
async fn a_call_that_is_given_up_waits_for_no_policy() {
    let room = Room::new();
    let undecided = room
        .tools
        .policy(&room.scope, Arc::new(Undecided::Before))
        .expect("registered");
    let (result, ()) = tokio::join!(room.call(json!({})), async { room.token.cancel() });
    assert_eq!(
        (code(&result), room.ran()),
        (Some("TOOL_ABORTED_BEFORE_DISPATCH"), 0)
    );

    undecided.dispose().await;
    let mut room = room;
    room.token = CancellationToken::new();
    room.tools
        .policy(&room.scope, Arc::new(Undecided::After))
        .expect("registered");
    let (result, ()) = tokio::join!(room.call(json!({})), async { room.token.cancel() });
    assert_eq!((code(&result), room.ran()), (Some("TOOL_ABORTED"), 1));
    assert!(
        room.work.abandoned.load(Ordering::SeqCst),
        "what it told was not told"
    );
}

fn long() -> String {
    "x".repeat(200)
}

/// What the model gets is within the limit, and says that it was cut.
fn is_cut(result: &ToolResult) -> bool {
    let text = result.single_text().expect("one text");
    text.len() == 64 && text.ends_with("\n[result truncated]")
}

#[tokio::test]
async fn t68_t78_what_a_policy_puts_in_place_of_a_result_is_within_the_limit() {
    let room = Room::new();
    room.policy(Verdict::Allow, Review::Replace(vec![ContentBlock::text(long())]));
    let result = room.call(json!({"limit": 64})).await;
    assert!(is_cut(&result) && !result.is_error, "{result:?}");

    let room = Room::new();
    room.policy(Verdict::Allow, Review::Block { feedback: long() });
    let result = room.call(json!({"limit": 64})).await;
    assert!(is_cut(&result) && result.is_error, "{result:?}");
}

#[tokio::test]
async fn t78_a_replacement_of_more_than_one_text_is_left_as_it_is() {
    let room = Room::new();
    let two = vec![ContentBlock::text(long()), ContentBlock::text(long())];
    room.policy(Verdict::Allow, Review::Replace(two.clone()));
    assert_eq!(room.call(json!({"limit": 64})).await.content, two);
}

#[tokio::test]
async fn t70_denials_and_failures_of_policies_are_within_the_limit() {
    let room = Room::new();
    room.policy(deny(&long()), Review::Accept);
    let denied = room.call(json!({"limit": 64})).await;
    assert!(is_cut(&denied) && denied.is_error, "{denied:?}");

    let room = Room::new();
    room.tools
        .policy(&room.scope, Arc::new(PanicsAfter))
        .expect("registered");
    let failed = room.call(json!({"limit": 64})).await;
    assert!(is_cut(&failed), "{failed:?}");
    assert_eq!(code(&failed), Some("POLICY_PANICKED"));

    let room = Room::new();
    room.tools
        .policy(&room.scope, Arc::new(Panics))
        .expect("registered");
    let failed = room.call(json!({"limit": 32})).await;
    assert_eq!(failed.single_text().expect("one text").len(), 32);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_over_is_told_to_end_and_fails() {
    let room = Room::new();
    let result = room.call(json!({"timeout": 700, "stay": true})).await;
    assert_eq!(
        result.single_text(),
        Some(r#"Error: tool "work" timed out after 700ms"#)
    );
    assert_eq!(code(&result), Some("TOOL_TIMEOUT"));
    assert!(room.work.ended.load(Ordering::SeqCst), "its body has ended");
    assert!(
        room.work.abandoned.load(Ordering::SeqCst),
        "what it told was not told"
    );
    assert!(!room.token.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_when_its_time_is_over_is_dropped() {
    let room = Room::new();
    let result = room
        .call(json!({"timeout": 700, "stay": true, "deaf": true}))
        .await;
    assert_eq!(code(&result), Some("TOOL_TIMEOUT"));
    assert!(room.work.ended.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_call_within_its_time_is_as_without_one() {
    let room = Room::new();
    assert_eq!(
        room.call(json!({"timeout": 60_000})).await.single_text(),
        Some("done")
    );
}
