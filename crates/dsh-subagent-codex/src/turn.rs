//! The one turn of a run: frames go in, answers to requests and in the end an [`End`] come out. Nothing is read or written
//! here.
//!
//! # Invariants
//!
//! 1. Only what names our thread and our turn counts. Until the turn is confirmed, the first turn that is named is taken for
//!    ours, and what is told of it counts only when that turns out to be true.
//! 2. A request that nobody can answer ends the run, whatever else the turn came to: it is refused, and the fault stays.
//! 3. After its end nothing that is told of the turn counts any more.

use dsh_subagent::StopReason;
use dsh_subagent_process::Failure;
use serde_json::Value;

use crate::failure::{Category, Fault, Stage, failure};
use crate::frame::{self, Frame};
use crate::handshake::refused;
use crate::permission::{Fact, Facts};
use crate::said::Said;
use crate::unattended;

/// The turn of a run.
#[derive(Debug)]
pub(crate) struct Turn {
    thread: String,
    id: TurnId,
    said: Said,
    facts: Facts,
    end: Option<End>,
    fatal: Option<Fault>,
}

/// What a turn came to.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// An answer, never a blank one.
    Answered(String),
    /// None, and what is to be said about it.
    Failed(StopReason, Failure),
}

#[derive(Debug)]
enum TurnId {
    /// `turn/start` is not answered. Somebody may have named it.
    Unconfirmed(Option<String>),
    Confirmed(String),
}

impl Turn {
    /// Begins, with the frame to be sent.
    pub(crate) fn begin(thread: String, task: &[String]) -> (Self, Value) {
        let start = frame::turn_start(&thread, task);
        let turn = Self {
            thread,
            id: TurnId::Unconfirmed(None),
            said: Said::default(),
            facts: Facts::default(),
            end: None,
            fatal: None,
        };
        (turn, start)
    }

    /// Hears a frame, and adds what is to be sent.
    pub(crate) fn hear(&mut self, frame: Frame, send: &mut Vec<Value>) {
        match frame {
            Frame::Response { id, result } if id == frame::TURN_START => self.started(result),
            Frame::Response { .. } => {}
            Frame::Notification { method, params } => {
                if let Err(fault) = self.told(&method, &params) {
                    self.fail(fault);
                }
            }
            Frame::Request { id, method, params } => send.push(self.asked(id, &method, &params)),
        }
    }

    /// Takes note of what Codex wrote for people.
    pub(crate) fn note(&mut self, fact: Fact) {
        self.facts.certain(fact);
    }

    /// What it came to, as soon as it has. A fault may still take its place.
    pub(crate) fn end(&self) -> Option<End> {
        if let Some(fault) = &self.fatal {
            return Some(failed(self.stage(), Category::UNKNOWN, fault.clone()));
        }
        match self.id {
            TurnId::Confirmed(_) => self.end.clone(),
            TurnId::Unconfirmed(_) => None,
        }
    }

    /// How far it has come.
    pub(crate) fn stage(&self) -> Stage {
        match self.id {
            TurnId::Unconfirmed(_) => Stage::TurnStart,
            TurnId::Confirmed(_) => Stage::Turn,
        }
    }

    /// What was said so far.
    pub(crate) fn output(&self) -> Option<String> {
        match self.id {
            TurnId::Unconfirmed(_) => None,
            TurnId::Confirmed(_) => self.said.answer(),
        }
    }

    /// The latest fact about a permission.
    pub(crate) fn fact(&self) -> Option<Fact> {
        self.facts.latest()
    }

    /// What ends it, if it is open.
    pub(crate) fn interrupt(&self) -> Option<Value> {
        match &self.id {
            TurnId::Confirmed(turn) if self.end.is_none() => Some(frame::turn_interrupt(&self.thread, turn)),
            TurnId::Confirmed(_) | TurnId::Unconfirmed(_) => None,
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.fatal.get_or_insert(fault);
    }

    fn started(&mut self, result: Result<Value, Value>) {
        if let Err(fault) = self.confirm(result) {
            self.fail(fault);
        }
    }

    fn confirm(&mut self, result: Result<Value, Value>) -> Result<(), Fault> {
        let TurnId::Unconfirmed(named) = &self.id else {
            return Ok(());
        };
        let result = result.map_err(|error| refused("turn/start", &error))?;
        let id = result["turn"]["id"].as_str().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| Fault("invalid turn/start response".to_owned()))?;
        if named.as_ref().is_some_and(|named| named != id) {
            return Err(Fault(
                "turn/start response did not match the active turn".to_owned(),
            ));
        }
        self.id = TurnId::Confirmed(id.to_owned());
        self.facts.confirm();
        Ok(())
    }

    /// Whether a turn is ours, as far as that is known.
    fn is_ours(&mut self, turn: &str) -> Result<bool, Fault> {
        match &mut self.id {
            TurnId::Confirmed(ours) => Ok(ours == turn),
            TurnId::Unconfirmed(Some(named)) if named == turn => Ok(true),
            TurnId::Unconfirmed(Some(_)) => Err(Fault("app-server referenced conflicting turns".to_owned())),
            TurnId::Unconfirmed(none) => {
                *none = Some(turn.to_owned());
                Ok(true)
            }
        }
    }

    fn told(&mut self, method: &str, params: &Value) -> Result<(), Fault> {
        let turn = match method {
            "turn/started" | "turn/completed" => &params["turn"]["id"],
            "item/completed" => &params["turnId"],
            _ => return Ok(()),
        };
        let (Some(thread), Some(turn)) = (params["threadId"].as_str(), turn.as_str()) else {
            // One that could be ours would be waited for, for ever.
            return match method {
                "turn/completed" => Err(Fault("invalid turn/completed thread id".to_owned())),
                _ => Ok(()),
            };
        };
        if thread != self.thread || !self.is_ours(turn)? || self.end.is_some() {
            return Ok(());
        }
        match method {
            "turn/completed" => self.end = Some(self.completed(&params["turn"])),
            "item/completed" => self.item(&params["item"]),
            _ => {}
        }
        Ok(())
    }

    fn item(&mut self, item: &Value) {
        match item["type"].as_str() {
            Some("agentMessage") => {
                if let Err((category, fault)) = self.said.hear(item) {
                    self.end = Some(failed(Stage::Turn, category, fault));
                }
            }
            Some("commandExecution") if item["status"] == "declined" => {
                self.observe(Fact::CodexDeclinedCommand);
            }
            Some("fileChange") if item["status"] == "declined" => self.observe(Fact::CodexDeclinedFile),
            Some(_) | None => {}
        }
    }

    fn completed(&mut self, turn: &Value) -> End {
        let unknown = |fault: &str| failed(Stage::Turn, Category::UNKNOWN, Fault(fault.to_owned()));
        let status = match (turn["status"].as_str(), self.said.answer()) {
            (Some("completed"), Some(answer)) => return End::Answered(answer),
            (Some("completed"), None) => return unknown("Codex completed without a final answer"),
            (Some(status @ ("failed" | "interrupted")), _) => status,
            (Some(_) | None, _) => return unknown("invalid terminal turn status"),
        };
        let mut text = format!("Codex turn ended with status {status}");
        let error = &turn["error"];
        let category = Category::of(&error["codexErrorInfo"]);
        if !error.is_null() {
            text = format!("{text}: {}", category.name());
        }
        if category.is_sandbox() {
            self.observe(Fact::SandboxFailed);
        }
        failed(Stage::Turn, category, Fault(text))
    }

    fn asked(&mut self, id: Value, method: &str, params: &Value) -> Value {
        match self.decide(method, params) {
            Ok(answer) => {
                self.observe(answer.fact);
                frame::answer(id, answer.result)
            }
            Err(fault) => {
                let refusal = frame::refusal(id, &fault.0);
                self.fail(fault);
                refusal
            }
        }
    }

    fn decide(&mut self, method: &str, params: &Value) -> Result<unattended::Answer, Fault> {
        let ours = match &params["turnId"] {
            _ if params["threadId"] != *self.thread => false,
            Value::String(turn) => self.is_ours(turn)?,
            Value::Null => unattended::may_name_no_turn(method),
            _ => false,
        };
        if !ours {
            return Err(unattended::unsupported(method));
        }
        unattended::answer(method, params)
    }

    /// A fact about this turn.
    fn observe(&mut self, fact: Fact) {
        match self.id {
            TurnId::Unconfirmed(_) => self.facts.provisional(fact),
            TurnId::Confirmed(_) => self.facts.certain(fact),
        }
    }
}

fn failed(stage: Stage, category: Category, fault: Fault) -> End {
    End::Failed(category.stop(), failure(stage, category).caused_by(fault))
}

#[cfg(test)]
mod tests;
