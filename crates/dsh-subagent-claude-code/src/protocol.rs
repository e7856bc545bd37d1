//! What the lines of Claude Code mean, without reading or writing any.
//!
//! # Invariants
//!
//! 1. The product is up once, when it has answered the request that began the conversation.
//! 2. The input is closed once, at the first result of the product, and nothing is written behind that.
//! 3. The answer is the text of a success. The last result that says anything decides whether there is one.

use std::collections::BTreeSet;

use dsh_llm::ContentBlock;
use dsh_subagent_process::{Failure, MAX_ANSWER_BYTES};
use dsh_subprocess::LeaderExit;
use serde_json::Value;

use crate::command::INITIALIZE;
use crate::config::PermissionMode;
use crate::control;
use crate::fact::Fact;
use crate::failure::{Category, Stage, failure};

/// A conversation, as far as it came.
#[derive(Debug)]
pub(crate) struct Protocol {
    mode: PermissionMode,
    input: Input,
    verdict: Option<Verdict>,
    fact: Option<Fact>,
    /// What the product does beside the conversation, as it last said.
    background: BTreeSet<String>,
    /// What of that ran at the last result, and was not told to have come to its own end.
    left: BTreeSet<String>,
}

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// The product is up.
    Up,
    /// It does not take part.
    Refused,
    /// This is to be written.
    Send(Value),
    /// Its input is to be closed, behind all that was to be written.
    CloseInput,
}

/// How the lines ended.
#[derive(Debug)]
pub(crate) enum Ending<E> {
    /// There was the end.
    Closed,
    /// They could not be read any more.
    Unreadable(E),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    Closed,
}

#[derive(Debug)]
enum Verdict {
    Answer(String),
    Failed(Category, Option<u16>),
}

impl Protocol {
    pub(crate) fn new(mode: PermissionMode) -> Self {
        Self {
            mode,
            input: Input::Open,
            verdict: None,
            fact: None,
            background: BTreeSet::new(),
            left: BTreeSet::new(),
        }
    }

    /// What is to be done for a line. One that is no message of the protocol, or one of no interest, asks for nothing.
    pub(crate) fn line(&mut self, line: &str) -> Vec<Effect> {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            tracing::debug!("Claude Code wrote what is no message: {line}");
            return Vec::new();
        };
        match message["type"].as_str() {
            Some("control_response") => self.response(&message["response"]),
            Some("control_request") => self.request(&message),
            Some("system") => {
                self.system(&message);
                Vec::new()
            }
            Some("result") => self.result(&message),
            Some(_) | None => Vec::new(),
        }
    }

    /// The latest decision that nobody could be asked for, in words.
    pub(crate) fn fact(&self) -> Option<String> {
        self.fact.map(|fact| fact.line(self.mode))
    }

    /// What came of it, when the lines have ended and the product has exited, as far as that was seen.
    ///
    /// A success is what the product called one; how it exited can only spoil it.
    pub(crate) fn conclude<E>(
        &self,
        ending: Ending<E>,
        exit: Option<LeaderExit>,
    ) -> Result<Vec<ContentBlock>, Failure>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let clean = match exit {
            Some(LeaderExit::Code(0) | LeaderExit::Lost) | None => true,
            Some(LeaderExit::Code(_) | LeaderExit::Signal { .. } | LeaderExit::GuardLost) => false,
        };
        let failed = |stage, category| Err(failure(stage, category).with_exit(exit));
        match (&self.verdict, ending) {
            (Some(Verdict::Failed(category, status)), _) => {
                Err(failure(Stage::QueryRun, *category).with_http_status(*status))
            }
            (Some(Verdict::Answer(answer)), Ending::Closed) if clean => Ok(output(answer, self.left.len())),
            (Some(Verdict::Answer(_)), Ending::Closed) => failed(Stage::QueryRun, Category::Unknown),
            (None, Ending::Closed) if clean => Err(failure(Stage::QueryRun, Category::MissingResult)),
            (None, Ending::Closed) => failed(Stage::Process, Category::ProcessExit),
            (verdict, Ending::Unreadable(error)) => {
                let (stage, category) = match (verdict, exit) {
                    (None, Some(_)) => (Stage::Process, Category::ProcessExit),
                    (Some(_), _) | (None, None) => (Stage::QueryRun, Category::Unknown),
                };
                Err(failure(stage, category).with_exit(exit).caused_by(error))
            }
        }
    }

    fn response(&mut self, response: &Value) -> Vec<Effect> {
        if response["request_id"] != INITIALIZE {
            return Vec::new();
        }
        match response["subtype"].as_str() {
            Some("success") => vec![Effect::Up],
            Some(_) | None => {
                tracing::debug!("Claude Code refused to begin: {response}");
                vec![Effect::Refused]
            }
        }
    }

    fn request(&mut self, message: &Value) -> Vec<Effect> {
        let (answer, fact) = control::answer(message);
        self.fact = fact.or(self.fact);
        match self.input {
            Input::Open => vec![Effect::Send(answer)],
            Input::Closed => Vec::new(),
        }
    }

    fn system(&mut self, message: &Value) {
        match message["subtype"].as_str() {
            Some("permission_denied") => self.fact = Some(Fact::DeniedByProduct),
            Some("background_tasks_changed") => {
                let tasks = message["tasks"].as_array().into_iter().flatten();
                let ids = tasks.filter_map(|task| task["task_id"].as_str());
                self.background = ids.map(str::to_owned).collect();
            }
            Some("task_notification") => {
                let own_end = matches!(message["status"].as_str(), Some("completed" | "failed"));
                if let (true, Some(id)) = (own_end, message["task_id"].as_str()) {
                    self.left.remove(id);
                }
            }
            Some(_) | None => {}
        }
    }

    fn result(&mut self, message: &Value) -> Vec<Effect> {
        self.left.clone_from(&self.background);
        match (verdict(message), &self.verdict) {
            // A later turn that had nothing to say.
            (None, Some(_)) => {}
            (None, None) => self.verdict = Some(Verdict::Failed(Category::InvalidSuccess, None)),
            (Some(verdict), _) => self.verdict = Some(verdict),
        }
        match std::mem::replace(&mut self.input, Input::Closed) {
            Input::Open => vec![Effect::CloseInput],
            Input::Closed => Vec::new(),
        }
    }
}

/// What a result says; nothing for a success without words.
fn verdict(message: &Value) -> Option<Verdict> {
    let text = message["result"].as_str().unwrap_or_default();
    let subtype = message["subtype"].as_str().unwrap_or_default();
    if subtype != "success" || message["is_error"] != false {
        tracing::debug!("Claude Code ended a turn with {message}");
    }
    if subtype != "success" {
        return Some(Verdict::Failed(Category::of_subtype(subtype), None));
    }
    if message["is_error"] != false {
        let status = message["api_error_status"].as_u64();
        let status = status.and_then(|status| u16::try_from(status).ok());
        return Some(Verdict::Failed(Category::InvalidSuccess, status));
    }
    if text.len() > MAX_ANSWER_BYTES {
        return Some(Verdict::Failed(Category::AnswerTooLong, None));
    }
    (!text.trim().is_empty()).then(|| Verdict::Answer(text.to_owned()))
}

/// The answer, and behind it what ended with the run.
fn output(answer: &str, left: usize) -> Vec<ContentBlock> {
    let mut output = vec![ContentBlock::text(answer)];
    let note = match left {
        0 => return output,
        1 => "\n[1 background task of Claude Code was ended with its run]".to_owned(),
        left => format!("\n[{left} background tasks of Claude Code were ended with its run]"),
    };
    output.push(ContentBlock::text(note));
    output
}

#[cfg(test)]
mod tests;
