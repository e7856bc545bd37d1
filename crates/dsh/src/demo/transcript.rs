//! Calls through the real tool pipeline, printed as they happen.

use std::io;
use std::sync::Arc;

use dsh_agent::Agent;
use dsh_llm::{CallId, text_of};
use dsh_tools::{ToolContext, ToolRegistry};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::DemoError;
use crate::output::say;

/// One agent's calls and what came back.
pub(crate) struct Transcript<'a> {
    agent: &'a Arc<Agent>,
    tools: &'a ToolRegistry,
    calls: u32,
}

impl<'a> Transcript<'a> {
    /// An empty transcript of `agent`.
    pub(crate) fn new(agent: &'a Arc<Agent>, tools: &'a ToolRegistry) -> Self {
        Self {
            agent,
            tools,
            calls: 0,
        }
    }

    /// Prints a heading.
    pub(crate) fn chapter(&self, heading: &str) -> io::Result<()> {
        say(format_args!("\n== {heading}"))
    }

    /// Prints a remark.
    pub(crate) fn note(&self, remark: &str) -> io::Result<()> {
        say(format_args!("-- {remark}"))
    }

    /// Calls a tool. The result counts as delivered once it is printed.
    pub(crate) async fn call(&mut self, tool: &str, args: Value) -> io::Result<String> {
        self.calls += 1;
        let call_id = CallId::new(format!("call-{}", self.calls));
        say(format_args!(">> {tool} {args}"))?;
        let context = ToolContext {
            caller: Some(Arc::clone(self.agent)),
            token: CancellationToken::new(),
            call_id,
        };
        let result = self.tools.execute(tool, args, context).await;
        let text = text_of(&result.content);
        say_indented("<< ", &text)?;
        result.deliveries.deliver_all();
        Ok(text)
    }

    /// Starts a background command and returns its task's id.
    pub(crate) async fn start(&mut self, description: &str, command: &str) -> Result<String, DemoError> {
        let args = json!({"command": command, "description": description, "run_in_background": true});
        let answer = self.call("bash", args).await?;
        match answer
            .strip_prefix("started background ")
            .and_then(|rest| rest.split_once(' '))
        {
            Some((_, id)) => Ok(id.to_owned()),
            None => Err(DemoError::NotStarted(answer)),
        }
    }

    /// Waits until the agent is told something, and prints it as the model would see it.
    pub(crate) async fn notice(&mut self) -> io::Result<String> {
        let inbox = self.agent.inbox();
        inbox.arrived().await;
        let lease = inbox.lease();
        let messages = lease.messages().iter();
        let told: Vec<_> = messages.map(|message| text_of(&message.content)).collect();
        lease.commit();
        let told = told.join("\n");
        say_indented("!! ", &told)?;
        Ok(told)
    }
}

/// Prints a text with a mark before its first line and the others aligned below.
fn say_indented(mark: &str, text: &str) -> io::Result<()> {
    let mut lines = text.lines();
    say(format_args!("{mark}{}", lines.next().unwrap_or_default()))?;
    lines.try_for_each(|line| say(format_args!("   {line}")))
}
