//! From the first frame to a thread: initialize, initialized, thread/start.

use serde_json::Value;

use crate::config::PermissionMode;
use crate::failure::{Fault, Stage};
use crate::frame::{self, Frame};
use crate::unattended;

/// A handshake that is going on.
#[derive(Debug)]
pub(crate) struct Handshake {
    cwd: String,
    mode: PermissionMode,
    stage: Stage,
}

impl Handshake {
    /// Begins, with the first frame to be sent.
    pub(crate) fn begin(cwd: String, mode: PermissionMode) -> (Self, Value) {
        let handshake = Self {
            cwd,
            mode,
            stage: Stage::Initialize,
        };
        (handshake, frame::initialize())
    }

    /// How far it has come.
    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Hears a frame, and adds what is to be sent. Returns the id of the thread as soon as there is one.
    ///
    /// # Errors
    ///
    /// A [`Fault`] ends it.
    pub(crate) fn hear(&mut self, frame: Frame, send: &mut Vec<Value>) -> Result<Option<String>, Fault> {
        match (frame, self.stage) {
            (Frame::Response { id, result }, Stage::Initialize) if id == frame::INITIALIZE => {
                self.initialized(result)?;
                send.push(frame::initialized());
                send.push(frame::thread_start(&self.cwd, self.mode));
                Ok(None)
            }
            (Frame::Response { id, result }, Stage::ThreadStart) if id == frame::THREAD_START => {
                thread(result).map(Some)
            }
            (Frame::Request { id, method, params }, _) => {
                let fault = if params["turnId"].is_string() {
                    Fault("app-server referenced a turn before turn/start".to_owned())
                } else {
                    unattended::unsupported(&method)
                };
                send.push(frame::refusal(id, &fault.0));
                Err(fault)
            }
            (Frame::Response { .. } | Frame::Notification { .. }, _) => Ok(None),
        }
    }

    fn initialized(&mut self, result: Result<Value, Value>) -> Result<(), Fault> {
        let result = result.map_err(|error| refused("initialize", &error))?;
        if !result.is_object() {
            return Err(Fault("invalid initialize response".to_owned()));
        }
        self.stage = Stage::ThreadStart;
        Ok(())
    }
}

pub(crate) fn refused(method: &str, error: &Value) -> Fault {
    Fault(format!("app-server refused {method}: {error}"))
}

/// One that Codex would keep is none.
fn thread(result: Result<Value, Value>) -> Result<String, Fault> {
    let result = result.map_err(|error| refused("thread/start", &error))?;
    let thread = &result["thread"];
    match thread["id"].as_str() {
        Some(id) if !id.is_empty() && thread["ephemeral"] == true => Ok(id.to_owned()),
        Some(_) | None => Err(Fault(
            "subagent-codex: app-server did not create an ephemeral thread".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests;
