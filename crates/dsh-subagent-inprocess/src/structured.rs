//! A result in a shape that was asked for.
//!
//! # Invariants
//!
//! 1. What was handed over counts when the result of that very call is in the child's log, unchanged or with other content;
//!    what was blocked, failed or aborted does not.
//! 2. The first that counts is the result. From then on no call runs, and no step is taken.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use dsh_agent::{Agent, InstanceId, Instruction};
use dsh_tools::{
    Annotations, CallPolicy, Delivery, PendingCall, RegisterError, Tool, ToolContext, ToolDefinition,
    ToolError, ToolOutput, ToolRegistry, Verdict, decode,
};
use serde_json::Value;

/// The tool's name.
const NAME: &str = "structured_output";

/// Where the instruction stands, behind all guidance for tools.
const ORDER: i32 = 190;

const INSTRUCTION: &str = "Hand over your final result by calling the structured_output tool once, when everything else is \
    done: its arguments are the result, and text alone is none. Nothing can be called after it.";

const DESCRIPTION: &str = "Hands over the final result of your task. Call it once, as the last thing you do: it ends your \
    work.";

const RECORDED: &str = "Structured output recorded.";

/// The result of one child.
#[derive(Debug, Clone)]
pub(crate) struct Structured {
    schema: Arc<Value>,
    recorded: Arc<OnceLock<Value>>,
}

impl Structured {
    /// One that nobody has handed over yet.
    pub(crate) fn new(schema: Value) -> Self {
        Self {
            schema: Arc::new(schema),
            recorded: Arc::default(),
        }
    }

    /// What the child is told about it.
    pub(crate) fn instruction(&self) -> Instruction {
        Instruction {
            name: "subagent:structured-output".to_owned(),
            order: ORDER,
            text: INSTRUCTION.to_owned(),
        }
    }

    /// What was handed over.
    pub(crate) fn value(&self) -> Option<&Value> {
        self.recorded.get()
    }

    /// Gives the child the tool, for as long as it lives, and the rule that nothing runs after it.
    pub(crate) fn install(self, tools: &ToolRegistry, agent: &Arc<Agent>) -> Result<(), RegisterError> {
        let gate = Gate {
            child: agent.instance(),
            recorded: Arc::clone(&self.recorded),
        };
        drop(tools.policy(agent.scope(), Arc::new(gate))?);
        drop(tools.grant(agent, Arc::new(self))?);
        Ok(())
    }
}

#[async_trait]
impl Tool for Structured {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            input_schema: Value::clone(&self.schema),
            annotations: Annotations {
                read_only: Some(true),
                ..Annotations::default()
            },
        }
    }

    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        let value: Value = decode(&self.schema, &args)?;
        let recorded = Arc::clone(&self.recorded);
        Ok(ToolOutput::text(RECORDED).delivers(Delivery::new(move || {
            // The first one counts.
            let _ = recorded.set(value);
            if let Some(agent) = ctx.caller {
                agent.conclude();
            }
        })))
    }
}

/// Nothing runs once the result is there.
struct Gate {
    child: InstanceId,
    recorded: Arc<OnceLock<Value>>,
}

#[async_trait]
impl CallPolicy for Gate {
    async fn before(&self, call: &PendingCall) -> Verdict {
        let is_child = call
            .caller
            .as_ref()
            .is_some_and(|caller| caller.instance() == self.child);
        if is_child && self.recorded.get().is_some() {
            let tool = &call.tool;
            return Verdict::Deny {
                reason: format!(
                    "structured output already recorded: the run is complete, so `{tool}` is not executed"
                ),
            };
        }
        Verdict::Allow
    }
}
