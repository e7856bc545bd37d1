//! A provider whose children do what a script says, and the tests that it is one.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_llm::ContentBlock;
use dsh_subagent::{
    Capabilities, Diagnostic, ParentContext, Run, RunFault, RunParts, RunResult, StartFailure, StartRequest,
    StopReason, SubagentProvider,
};
use dsh_testkit::Gate;
use serde_json::{Value, json};

/// What a child does.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) context: ParentContext,
    pub(crate) capabilities: Capabilities,
    pub(crate) product: Option<&'static str>,
    pub(crate) reply: String,
    pub(crate) structured: Option<Value>,
    pub(crate) stop: StopReason,
    pub(crate) diagnostic: Option<&'static str>,
    /// Keeps the start, the child and the release back until it is opened.
    pub(crate) start_gate: Option<Gate>,
    pub(crate) run_gate: Option<Gate>,
    pub(crate) release_gate: Option<Gate>,
    /// What fails instead.
    pub(crate) start_fault: Option<StartFailure>,
    pub(crate) run_fault: Option<&'static str>,
    pub(crate) release_fault: Option<&'static str>,
}

/// What the provider has seen. Clones are the same provider.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: Script,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    requests: Vec<StartRequest>,
    releases: usize,
    aborts: usize,
    running: usize,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            context: ParentContext::Fresh,
            capabilities: Capabilities::ALL,
            product: None,
            reply: "scripted reply".to_owned(),
            structured: None,
            stop: StopReason::Completed,
            diagnostic: None,
            start_gate: None,
            run_gate: None,
            release_gate: None,
            start_fault: None,
            run_fault: None,
            release_fault: None,
        }
    }
}

impl Script {
    pub(crate) fn ends(stop: StopReason, reply: &str) -> Self {
        Self {
            stop,
            reply: reply.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn provider(self) -> Scripted {
        Scripted {
            script: self,
            seen: Arc::default(),
        }
    }
}

impl Scripted {
    pub(crate) fn requests(&self) -> Vec<StartRequest> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// How many starts were asked of it.
    pub(crate) fn starts(&self) -> usize {
        self.seen.lock().unwrap().requests.len()
    }

    pub(crate) fn releases(&self) -> usize {
        self.seen.lock().unwrap().releases
    }

    pub(crate) fn aborts(&self) -> usize {
        self.seen.lock().unwrap().aborts
    }

    /// How many children are published and not released.
    pub(crate) fn running(&self) -> usize {
        self.seen.lock().unwrap().running
    }

    async fn child(self, request: StartRequest) -> Result<RunResult, RunFault> {
        let script = &self.script;
        let work = async {
            if let Some(gate) = &script.run_gate {
                gate.opened().await;
            }
        };
        tokio::select! {
            biased;
            () = request.token.cancelled() => {
                self.seen.lock().unwrap().aborts += 1;
                return Ok(RunResult::aborted());
            }
            () = work => {}
        }
        if let Some(fault) = script.run_fault {
            return Err(RunFault::new(fault));
        }
        let reply = json!({ "reply": script.reply });
        let output = match script.reply.as_str() {
            "" => Vec::new(),
            reply => vec![ContentBlock::text(reply)],
        };
        Ok(RunResult {
            output,
            structured: request
                .output_schema
                .map(|_| script.structured.clone().unwrap_or(reply)),
            stop: script.stop.clone(),
            diagnostic: script.diagnostic.and_then(Diagnostic::new),
        })
    }

    async fn release(self) -> Result<(), RunFault> {
        if let Some(gate) = &self.script.release_gate {
            gate.opened().await;
        }
        let mut seen = self.seen.lock().unwrap();
        seen.releases += 1;
        seen.running -= 1;
        self.script
            .release_fault
            .map_or(Ok(()), |fault| Err(RunFault::new(fault)))
    }
}

#[async_trait]
impl SubagentProvider for Scripted {
    fn capabilities(&self) -> Capabilities {
        self.script.capabilities
    }

    fn context(&self) -> ParentContext {
        self.script.context
    }

    fn product(&self) -> Option<&str> {
        self.script.product
    }

    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        self.seen.lock().unwrap().requests.push(request.clone());
        let aborted = || StartFailure::new("scripted subagent start aborted before publication");
        let setup = async {
            if let Some(gate) = &self.script.start_gate {
                gate.opened().await;
            }
        };
        let cancelled = tokio::select! {
            biased;
            () = request.token.cancelled() => true,
            () = setup => false,
        };
        if let Some(failure) = &self.script.start_fault {
            return Err(failure.clone());
        }
        if cancelled {
            return Err(aborted());
        }
        self.seen.lock().unwrap().running += 1;
        let id = format!("scripted-{}", self.starts());
        Run::publish(RunParts {
            id,
            local: None,
            parent: Arc::clone(&request.parent),
            token: request.token.clone(),
            work: self.clone().child(request),
            release: self.clone().release(),
        })
        .await
    }
}

mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::rig::Rig;

    fn request(rig: &Rig) -> StartRequest {
        StartRequest::new("task", Arc::clone(rig.parent.agent()), CancellationToken::new())
    }

    #[tokio::test]
    async fn s15_s16_s18_it_replies_under_any_name_and_without_a_schema_nothing_is_structured() {
        let rig = Rig::new();
        rig.provide("other", Script::default());
        let run = rig.subagents.start("other", request(&rig)).await.unwrap();
        let result = run.result().await.unwrap();
        assert_eq!(result, RunResult::completed("scripted reply"));
        run.dispose().await.unwrap();
    }

    #[tokio::test]
    async fn s17_with_a_schema_the_result_is_structured() {
        let rig = Rig::new();
        rig.provide("plain", Script::default());
        let given = Script {
            structured: Some(json!({ "n": 1 })),
            ..Script::default()
        };
        rig.provide("given", given);
        for (name, expected) in [
            ("plain", json!({ "reply": "scripted reply" })),
            ("given", json!({ "n": 1 })),
        ] {
            let request = StartRequest {
                output_schema: Some(json!({ "type": "object" })),
                ..request(&rig)
            };
            let run = rig.subagents.start(name, request).await.unwrap();
            assert_eq!(run.result().await.unwrap().structured, Some(expected));
            run.dispose().await.unwrap();
        }
    }

    #[tokio::test]
    async fn s19_the_stop_reason_is_the_scripts_and_a_cancelled_run_is_aborted() {
        let rig = Rig::new();
        rig.provide("refuses", Script::ends(StopReason::Refusal, ""));
        let run = rig.subagents.start("refuses", request(&rig)).await.unwrap();
        assert_eq!(run.result().await.unwrap().stop, StopReason::Refusal);
        run.dispose().await.unwrap();
        let held = Script {
            run_gate: Some(Gate::new()),
            ..Script::default()
        };
        rig.provide("held", held);
        let asked = request(&rig);
        let run = rig.subagents.start("held", asked.clone()).await.unwrap();
        asked.token.cancel();
        assert_eq!(run.result().await.unwrap(), RunResult::aborted());
        run.dispose().await.unwrap();
    }

    #[tokio::test]
    async fn s20_a_cancelled_start_is_no_run() {
        let rig = Rig::new();
        let slow = Script {
            start_gate: Some(Gate::new()),
            ..Script::default()
        };
        let provider = rig.provide("slow", slow);
        let asked = request(&rig);
        let (start, cancel) = tokio::join!(rig.subagents.start("slow", asked.clone()), async {
            dsh_testkit::eventually("the start", || provider.starts() == 1).await;
            asked.token.cancel();
        });
        let () = cancel;
        assert_eq!(
            start.unwrap_err().to_string(),
            "scripted subagent start aborted before publication"
        );
        let early = request(&rig);
        early.token.cancel();
        assert!(rig.subagents.start("slow", early).await.is_err());
        assert_eq!((provider.starts(), provider.running()), (2, 0));
    }

    #[tokio::test]
    async fn s21_it_goes_with_its_scope() {
        let rig = Rig::new();
        let scope = rig.scope.child("provider").unwrap();
        rig.provide_on(&scope, "brief", Script::default());
        scope.close().await.unwrap();
        assert!(rig.subagents.names().is_empty());
    }
}
