//! `[agent]` and `[approval]`: how an agent works, and what it has to ask for.

use std::num::NonZeroUsize;

use dsh_agent_loop::{LoopConfig, ToolOrder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Fault;

/// `[agent]`: how agents work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentTable {
    /// How many tool calls of one answer run at once, as far as the tools allow it. 1 runs them one by one.
    #[schemars(range(min = 1))]
    pub max_parallel_tool_calls: usize,
    /// Who the agent is, for the system prompt. Empty: nobody in particular.
    pub persona: String,
    /// In which order the model sees the tools; `<unlisted-tools>` stands for those that are not listed. Empty: by name.
    pub tool_order: Vec<String>,
}

/// `[approval]`: what is asked for before it is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalTable {
    /// The tools whose calls a person is asked about. Where nobody can be asked they are denied.
    pub ask: Vec<String>,
}

impl AgentTable {
    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.max_parallel_tool_calls == 0 {
            let problem = "must be at least 1, is 0".to_owned();
            faults.push(Fault::new("agent.max_parallel_tool_calls", problem));
        }
        if !self.tool_order.is_empty()
            && let Err(error) = ToolOrder::new(&self.tool_order)
        {
            faults.push(Fault::new("agent.tool_order", error.to_string()));
        }
        faults
    }

    /// The settings of the loop; what is out of range, which [`faults`](Self::faults) names, is put into it.
    pub(super) fn settings(&self) -> LoopConfig {
        let order = (!self.tool_order.is_empty()).then(|| ToolOrder::new(&self.tool_order).ok());
        LoopConfig {
            max_parallel_tool_calls: NonZeroUsize::new(self.max_parallel_tool_calls)
                .unwrap_or(NonZeroUsize::MIN),
            tool_order: order.flatten().unwrap_or_default(),
            ..LoopConfig::default()
        }
    }
}

impl Default for AgentTable {
    fn default() -> Self {
        Self {
            max_parallel_tool_calls: LoopConfig::default().max_parallel_tool_calls.get(),
            persona: String::new(),
            tool_order: Vec::new(),
        }
    }
}

/// A fault for each name in the two tables that no tool has.
pub(super) fn unknown_tools(agent: &AgentTable, approval: &ApprovalTable, tools: &[String]) -> Vec<Fault> {
    // What stands for the rest is no name of a tool.
    let ordered = agent.tool_order.iter().filter(|name| !name.starts_with('<'));
    let ordered = ordered.map(|name| ("agent.tool_order", name));
    let asked = approval.ask.iter().map(|name| ("approval.ask", name));
    let unknown = ordered.chain(asked).filter(|(_, name)| !tools.contains(name));
    let fault = |(key, name): (&str, &String)| {
        let problem = format!("no tool has the name {name:?} (there is: {})", tools.join(", "));
        Fault::new(key, problem)
    };
    unknown.map(fault).collect()
}
