//! Turns that are played: what the app server says, in which order, and what that comes to.

use std::error::Error;

use serde_json::json;

use super::*;

mod answers;
mod facts;
mod requests;

const THREAD: &str = "thread-1";
const TURN: &str = "turn-1";

/// A turn, and the answers that it gave.
struct Played {
    turn: Turn,
    said: Vec<Value>,
}

impl Played {
    /// `turn/start` was sent.
    fn begun() -> Self {
        let (turn, start) = Turn::begin(THREAD.to_owned(), &["the task".to_owned(), "its rest".to_owned()]);
        Self {
            turn,
            said: vec![start],
        }
    }

    /// And answered.
    fn confirmed() -> Self {
        let mut played = Self::begun();
        played.hear(response(TURN));
        played
    }

    fn hear(&mut self, frame: Value) -> &mut Self {
        let frame = Frame::parse(&frame.to_string()).expect("a frame");
        self.turn.hear(frame, &mut self.said);
        self
    }

    fn failure(&self) -> (String, String) {
        match self.turn.end() {
            Some(End::Failed(_, failure)) => {
                let fault = failure.source().expect("what is behind it").to_string();
                (failure.to_string(), fault)
            }
            other => panic!("no failure: {other:?}"),
        }
    }

    fn answer(&self) -> Option<String> {
        match self.turn.end() {
            Some(End::Answered(answer)) => Some(answer),
            Some(End::Failed(..)) | None => None,
        }
    }

    /// The refusals among what it said.
    fn refused(&self) -> Vec<&Value> {
        let errors = self.said.iter().map(|frame| &frame["error"]["code"]);
        errors.filter(|code| !code.is_null()).collect()
    }
}

fn line(stage: &str, category: &str) -> String {
    format!("Product subagent failure (product: Codex; stage: {stage}; category: {category})")
}

fn response(turn: &str) -> Value {
    json!({"id": 3, "result": {"turn": {"id": turn, "status": "inProgress"}}})
}

fn notification(method: &str, params: Value) -> Value {
    json!({"method": method, "params": params})
}

fn item_of(turn: &str, item: Value) -> Value {
    notification(
        "item/completed",
        json!({"threadId": THREAD, "turnId": turn, "item": item}),
    )
}

fn item(item: Value) -> Value {
    item_of(TURN, item)
}

fn message(phase: Value, text: &str) -> Value {
    json!({"type": "agentMessage", "id": "message-1", "phase": phase, "text": text})
}

fn final_answer(text: &str) -> Value {
    item(message(json!("final_answer"), text))
}

fn completed_of(turn: Value) -> Value {
    notification("turn/completed", json!({"threadId": THREAD, "turn": turn}))
}

fn completed() -> Value {
    completed_of(json!({"id": TURN, "status": "completed"}))
}

fn failed_with(info: &Value) -> Value {
    let error = json!({"message": "SECRET_TOKEN in /private/secret.txt", "codexErrorInfo": info});
    completed_of(json!({"id": TURN, "status": "failed", "error": error}))
}

fn asks(method: &str, more: Value) -> Value {
    let mut params =
        json!({"threadId": THREAD, "turnId": TURN, "itemId": "item-1", "reason": "SECRET_TOKEN"});
    let more = more.as_object().cloned().unwrap_or_default();
    params.as_object_mut().expect("an object").extend(more);
    json!({"id": "asked-1", "method": method, "params": params})
}

fn declined(kind: &str) -> Value {
    json!({"type": kind, "status": "declined", "command": "cat /private/secret.txt"})
}

const COMMAND: &str = "item/commandExecution/requestApproval";
const FILE: &str = "item/fileChange/requestApproval";
