//! Calls and results, as an editor shows them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    Meta, Terminal, TerminalId, ToolCall, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use dsh_agent::Agent;
use dsh_llm::{CallId, ContentBlock};
use dsh_output::visible;
use dsh_scope::contain;
use dsh_tools::{CallCard, CardKind, ResultCard, TerminalExit, ToolRegistry, ToolResult};
use serde_json::{Value, json};

use crate::visible::visible_value;

/// Whether the editor shows the output of commands that we run as a terminal of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terminals {
    /// It does: `_meta.terminal_output` is among its capabilities.
    Shown,
    /// It gets the output as text.
    AsText,
}

/// The cards of the calls that run.
pub(crate) type Cards = Vec<(CallId, ToolCall)>;

/// Shows the calls of one agent.
pub(crate) struct Presenter {
    pub(crate) tools: ToolRegistry,
    pub(crate) agent: Arc<Agent>,
    pub(crate) terminals: Terminals,
}

impl Presenter {
    /// The card of a call that begins.
    pub(crate) fn begun(&self, id: ToolCallId, name: &str, args: &Value) -> ToolCall {
        let card = match self.call_card(name, args) {
            CallCard::Generic {
                title,
                kind,
                raw_input,
                content,
            } => ToolCall::new(id, visible(&title))
                .kind(kind_of(kind))
                .raw_input(raw_input.as_ref().map(visible_value))
                .content(visible_texts(&content)),
            CallCard::Terminal {
                title,
                description,
                cwd,
            } => {
                let mut content: Vec<ToolCallContent> = description.iter().map(|text| shown(text)).collect();
                let card = ToolCall::new(id.clone(), visible(&title)).kind(ToolKind::Execute);
                match self.terminals {
                    Terminals::Shown => {
                        let terminal = TerminalId::new(id.0.clone());
                        content.push(ToolCallContent::Terminal(Terminal::new(terminal)));
                        card.content(content)
                            .meta(self.terminal_info(&id, cwd.as_deref()))
                    }
                    Terminals::AsText => {
                        content.extend(self.elsewhere(cwd.as_deref()));
                        card.content(content)
                    }
                }
            }
        };
        card.name(name.to_owned()).status(ToolCallStatus::InProgress)
    }

    /// What becomes of the card when the call has ended.
    pub(crate) fn ended(
        &self,
        id: ToolCallId,
        name: &str,
        args: &Value,
        result: &ToolResult,
    ) -> ToolCallUpdate {
        let status = match result.is_error {
            true => ToolCallStatus::Failed,
            false => ToolCallStatus::Completed,
        };
        let fields = ToolCallUpdateFields::new().status(status);
        match (self.result_card(name, args, result), self.terminals) {
            (ResultCard::Generic { title, content }, _) => ToolCallUpdate::new(
                id,
                fields
                    .title(title.as_deref().map(|title| visible(title).into_owned()))
                    .content(texts(&content)),
            ),
            (ResultCard::Terminal { output, exit }, Terminals::Shown) => {
                let meta = terminal_end(&id, &output, exit.as_ref());
                ToolCallUpdate::new(id, fields).meta(meta)
            }
            (ResultCard::Terminal { output, exit }, Terminals::AsText) => {
                let text = console(&output, exit.as_ref());
                ToolCallUpdate::new(id, fields.content(vec![text.into()]))
            }
        }
    }

    fn call_card(&self, name: &str, args: &Value) -> CallCard {
        let tool = self.tools.get_for(&self.agent, name);
        let card = tool.and_then(|tool| contained(name, contain(|| tool.present_call(args))));
        card.unwrap_or_else(|| CallCard::Generic {
            title: name.to_owned(),
            kind: CardKind::Other,
            raw_input: Some(args.clone()),
            content: Vec::new(),
        })
    }

    fn result_card(&self, name: &str, args: &Value, result: &ToolResult) -> ResultCard {
        let tool = self.tools.get_for(&self.agent, name);
        let card = tool.and_then(|tool| contained(name, contain(|| tool.present_result(args, result))));
        card.unwrap_or_else(|| ResultCard::Generic {
            title: None,
            content: result.content.clone(),
        })
    }

    fn terminal_info(&self, id: &ToolCallId, workdir: Option<&Path>) -> Meta {
        meta(
            "terminal_info",
            json!({"terminal_id": id, "cwd": self.cwd(workdir)}),
        )
    }

    /// Where a command runs, for a card that has no place for it; nothing if that is where the session works.
    fn elsewhere(&self, workdir: Option<&Path>) -> Option<ToolCallContent> {
        let cwd = self.cwd(workdir).filter(|cwd| self.agent.cwd() != Some(cwd))?;
        Some(shown(&format!("in {}", cwd.display())))
    }

    fn cwd(&self, workdir: Option<&Path>) -> Option<PathBuf> {
        match (self.agent.cwd(), workdir) {
            (Some(cwd), Some(workdir)) => Some(cwd.join(workdir)),
            (cwd, workdir) => workdir.or(cwd).map(Path::to_owned),
        }
    }
}

/// What text a card has.
pub(crate) fn texts(content: &[ContentBlock]) -> Vec<ToolCallContent> {
    content
        .iter()
        .filter_map(|block| block.as_text())
        .map(ToolCallContent::from)
        .collect()
}

fn shown(text: &str) -> ToolCallContent {
    visible(text).into_owned().into()
}

fn visible_texts(content: &[ContentBlock]) -> Vec<ToolCallContent> {
    content
        .iter()
        .filter_map(|block| block.as_text())
        .map(shown)
        .collect()
}

fn contained<T>(name: &str, card: Result<Option<T>, dsh_scope::Panicked>) -> Option<T> {
    card.unwrap_or_else(|panicked| {
        tracing::error!("acp: the card of {name} panicked: {panicked}");
        None
    })
}

fn kind_of(kind: CardKind) -> ToolKind {
    match kind {
        CardKind::Read => ToolKind::Read,
        CardKind::Execute => ToolKind::Execute,
        CardKind::Other => ToolKind::Other,
    }
}

fn terminal_end(id: &ToolCallId, output: &str, exit: Option<&TerminalExit>) -> Meta {
    let mut all = meta("terminal_output", json!({"terminal_id": id, "data": output}));
    if let Some(exit) = exit {
        let (code, signal) = match exit {
            TerminalExit::Code(code) => (Some(code), None),
            TerminalExit::Signal(signal) => (None, Some(signal)),
        };
        let exit = json!({"terminal_id": id, "exit_code": code, "signal": signal});
        all.insert("terminal_exit".to_owned(), exit);
    }
    all
}

fn meta(key: &str, value: Value) -> Meta {
    Meta::from_iter([(key.to_owned(), value)])
}

/// The output as text, and how it ended where that is news.
fn console(output: &str, exit: Option<&TerminalExit>) -> String {
    let mut text = output.trim_end_matches('\n').to_owned();
    match exit {
        None | Some(TerminalExit::Code(0)) => {}
        Some(TerminalExit::Code(code)) => text.push_str(&format!("\n[exit code: {code}]")),
        Some(TerminalExit::Signal(signal)) => text.push_str(&format!("\n[killed by signal: {signal}]")),
    }
    let fence = fence_for(&text);
    format!("{fence}console\n{text}\n{fence}")
}

/// A fence that the text cannot close.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests;
