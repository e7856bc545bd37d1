//! The file of a session, read as what its model was told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::chaos::Faults;
use crate::chaos::book::{Book, Call, SIDES};
use crate::chaos::lines::Told;
use crate::chaos::writers::Writer;
use crate::{Reply, Room};

/// A file of a session, as it is.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) session: String,
    events: Vec<Value>,
    /// Whether something follows that is no event.
    is_torn: bool,
}

/// What the model was told, from the first message to the last.
#[derive(Debug, Default)]
pub(super) struct Story {
    book: Book,
    /// Tasks of which nothing more is to be read.
    drained: BTreeSet<String>,
    /// Writers whose call returned with all that they wrote.
    returned: BTreeSet<String>,
    /// Calls without a result, each with its number in the book.
    calls: BTreeMap<String, i64>,
    last: i64,
}

impl Log {
    /// Reads one, if there is one.
    ///
    /// # Errors
    ///
    /// What in it no harness writes.
    pub(super) fn read(path: &Path) -> Result<Option<Log>, String> {
        let Ok(text) = std::fs::read_to_string(path) else {
            return Ok(None);
        };
        let mut lines = text.split_inclusive('\n');
        let header: Value = match lines.next().map(serde_json::from_str) {
            Some(Ok(header)) => header,
            Some(Err(_)) | None => return Err(format!("the log has no header: {text:?}")),
        };
        let session = header["id"].as_str().ok_or("the log has no id")?.to_owned();
        let mut log = Log {
            session,
            events: Vec::new(),
            is_torn: false,
        };
        for line in lines {
            match serde_json::from_str::<Value>(line) {
                Ok(event) if line.ends_with('\n') => {
                    let number = log.events.len();
                    if log.is_torn || event["seq"] != number {
                        return Err(format!("event {number} of the log is {line:?}"));
                    }
                    log.events.push(event);
                }
                Ok(_) | Err(_) if !log.is_torn => log.is_torn = true,
                Ok(_) | Err(_) => return Err(format!("the log has no event here: {line:?}")),
            }
        }
        Ok(Some(log))
    }

    /// Whether it ends as a log does that was closed.
    pub(super) fn is_closed(&self) -> bool {
        let last = self
            .events
            .iter()
            .rev()
            .find(|event| event["type"] != "model/choice");
        !self.is_torn && last.is_none_or(|event| event["type"] == "turn/end")
    }

    /// Whether something of this type says this.
    pub(super) fn has(&self, kind: &str, text: &str) -> bool {
        let mut events = self.events.iter().filter(|event| event["type"] == kind);
        events.any(|event| text_of(&event["data"]) == text)
    }

    /// The greatest number of a task that it names.
    pub(super) fn greatest(&self) -> usize {
        let texts = self.events.iter().map(|event| text_of(&event["data"]));
        let numbers = texts.flat_map(|text| {
            let named = text.split("bash-").skip(1).map(|rest| {
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                rest[..digits].parse().unwrap_or(0)
            });
            named.collect::<Vec<usize>>()
        });
        numbers.max().unwrap_or(0)
    }

    pub(super) fn story(&self) -> Story {
        let mut story = Story::default();
        for event in &self.events {
            story.takes(event);
        }
        story
    }
}

impl Story {
    fn takes(&mut self, event: &Value) {
        let data = &event["data"];
        match event["type"].as_str() {
            Some("tool/call") => self.calls(data),
            Some("tool/result") => self.returns(data),
            Some("user/message") if data["source"]["kind"] == "plugin" => {
                self.book.noticed(&text_of(data), Told::Surely);
            }
            _ => {}
        }
    }

    fn calls(&mut self, data: &Value) {
        let arguments = data["arguments"].as_str().unwrap_or_default();
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let task = arguments["task_id"].as_str().unwrap_or_default().to_owned();
        let call = match data["name"].as_str() {
            Some("bash") => {
                let token = writer(arguments["command"].as_str().unwrap_or_default());
                match arguments["run_in_background"].as_bool() {
                    Some(true) => Call::Start(token),
                    Some(false) | None => Call::Foreground(token),
                }
            }
            Some("task_output") => Call::Read(task),
            Some("task_kill") => Call::Kill(task),
            _ => Call::List,
        };
        self.last += 1;
        self.book.sends(self.last, call);
        let id = data["callId"].as_str().unwrap_or_default().to_owned();
        if self.calls.insert(id.clone(), self.last).is_some() {
            self.book.faults.push(format!("call {id} is in the log twice"));
        }
    }

    fn returns(&mut self, data: &Value) {
        let id = data["callId"].as_str().unwrap_or_default();
        let text = text_of(data);
        // One that was never run was not called; one that a crash took the result of has told nothing.
        let Some(number) = self.calls.remove(id) else {
            return;
        };
        if data["error"]["code"] == "interrupted" {
            return;
        }
        let reply = Reply {
            texts: vec![text],
            is_error: data["isError"] == true,
        };
        self.completes(number, &reply);
        self.book.answered(number, reply);
    }

    /// Notes what is complete by this answer.
    fn completes(&mut self, number: i64, reply: &Reply) {
        let ended = reply.text().starts_with("(no new output)\n[status: ")
            && !["running", "stopping"]
                .iter()
                .any(|live| reply.text().contains(&format!("[status: {live}")));
        match self.book.call(number) {
            Some(Call::Read(task)) if ended => _ = self.drained.insert(task.clone()),
            Some(Call::Foreground(token)) if !reply.text().starts_with("Error: ") => {
                _ = self.returned.insert(token.clone());
            }
            _ => {}
        }
    }

    /// What is wrong with it, as far as it goes.
    pub(super) fn faults(&mut self) -> Faults {
        std::mem::take(&mut self.book.faults)
    }

    /// How many tasks there were.
    pub(super) fn tasks(&self) -> usize {
        self.book.tasks().len()
    }

    /// All is quiet: every task has an end, that was told. Of these writers every byte was told, or counted as left out.
    pub(super) fn at_rest(&self, writers: &[Writer], room: &Room) -> Faults {
        let mut faults = Vec::new();
        let tasks = self.book.tasks();
        let endless = tasks.iter().filter(|(id, _)| self.book.end_of(id).is_none());
        faults.extend(endless.map(|(id, _)| format!("{id} has no end")));
        let untold = self.book.untold();
        if !untold.is_empty() {
            faults.push(format!("nobody told the end of {untold:?}"));
        }
        for writer in writers {
            let task = tasks.iter().find(|(_, token)| *token == writer.token);
            let complete = match task {
                Some((id, _)) => self.drained.contains(id) && !self.book.was_given_up(id),
                None => self.returned.contains(&writer.token),
            };
            let Some(account) = self.book.account(&writer.token).filter(|_| complete) else {
                continue;
            };
            let wrong = SIDES
                .iter()
                .find_map(|&side| account.check(side, writer.written(room, side)).err());
            faults.extend(wrong.map(|wrong| {
                let end = task.and_then(|(id, _)| self.book.end_of(id));
                format!("{wrong} ({task:?}, {end:?}, {})", writer.command)
            }));
        }
        faults
    }
}

/// The token that a command begins with.
fn writer(command: &str) -> String {
    let token = command.strip_prefix(": ").and_then(|rest| rest.split(';').next());
    token.unwrap_or_default().to_owned()
}

/// The text of a message or a result.
fn text_of(data: &Value) -> String {
    let blocks = data["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}
