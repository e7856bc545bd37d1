//! What one client was told, in the order in which it came, and what must not be in it.
//!
//! The end of a task is told by a notice, by a read or a late kill that shows it, and by the acknowledgement of a kill whose
//! task then ends as asked. What holds:
//!
//! 1. There is one end: whoever shows it shows the same.
//! 2. There is at most one notice of it, and none after the end was told otherwise.
//! 3. When all is quiet, it was told.
//!
//! The answer to a call that the client had cancelled may or may not count, since the two cross: it forbids nothing and
//! proves nothing.

use std::collections::BTreeMap;

use super::lines::{Account, Elsewhere, Side, Told};
use crate::Reply;

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    /// A background command, by its token.
    Start(String),
    /// A foreground command, by its token.
    Foreground(String),
    Read(String),
    Kill(String),
    List,
    /// A look at the resource of a task, which tells nothing.
    Look(String),
}

/// What was told of one task.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Its status line, once it has ended.
    pub(super) end: Option<String>,
    surely: bool,
    maybe: bool,
    notices: usize,
    kill: Option<Told>,
}

/// What one client knows.
#[derive(Debug, Default)]
pub(super) struct Book {
    calls: BTreeMap<i64, (Call, Told)>,
    /// Which writer's a task is.
    tasks: BTreeMap<String, String>,
    ends: BTreeMap<String, Ends>,
    accounts: BTreeMap<String, Account>,
    /// Calls that were answered.
    pub(super) answers: BTreeMap<i64, Reply>,
    pub(super) faults: Vec<String>,
}

impl Book {
    /// A call goes out.
    pub(super) fn sends(&mut self, id: i64, call: Call) {
        if let Call::Start(token) | Call::Foreground(token) = &call {
            self.accounts.insert(token.clone(), Account::new(token));
        }
        self.calls.insert(id, (call, Told::Surely));
    }

    /// Its cancellation goes out.
    pub(super) fn cancels(&mut self, id: i64) {
        if let Some((_, told)) = self.calls.get_mut(&id) {
            *told = Told::Maybe;
        }
    }

    /// What an open call is about.
    pub(super) fn call(&self, id: i64) -> Option<&Call> {
        self.calls.get(&id).map(|(call, _)| call)
    }

    /// Calls that wait for their answer.
    pub(super) fn open(&self) -> Vec<i64> {
        let open = self.calls.iter().filter(|(_, (_, told))| *told == Told::Surely);
        open.map(|(id, _)| *id).collect()
    }

    /// The id of the task that a writer became, if it is known.
    pub(super) fn task_of(&self, token: &str) -> Option<&str> {
        let (id, _) = self.tasks.iter().find(|(_, other)| *other == token)?;
        Some(id)
    }

    /// The tasks that are known, each with its writer.
    pub(super) fn tasks(&self) -> Vec<(String, String)> {
        let tasks = self.tasks.iter();
        tasks.map(|(id, token)| (id.clone(), token.clone())).collect()
    }

    /// The end of a task, if it was seen.
    pub(super) fn end_of(&self, id: &str) -> Option<&str> {
        self.ends.get(id)?.end.as_deref()
    }

    /// Whether nobody waited for its start any more: it was to end before it had begun, and may begin after that.
    pub(super) fn was_given_up(&self, id: &str) -> bool {
        self.end_of(id).is_some_and(|end| end.contains("spawn failed: "))
    }

    pub(super) fn account(&self, token: &str) -> Option<&Account> {
        self.accounts.get(token)
    }

    /// Tasks that have ended and whose end nobody has told.
    pub(super) fn untold(&self) -> Vec<&str> {
        let untold = self.ends.iter().filter(|(_, ends)| !ends.is_told());
        untold.map(|(id, _)| id.as_str()).collect()
    }

    /// An answer comes in.
    pub(super) fn answered(&mut self, id: i64, reply: Reply) {
        let Some((call, told)) = self.calls.remove(&id) else {
            self.faults
                .push(format!("an answer to call {id}, which is not open: {reply:?}"));
            return;
        };
        match &call {
            Call::Start(token) => {
                if let Some(task) = reply.text().strip_prefix("started background task ") {
                    self.is_of(task, token);
                }
            }
            Call::Foreground(token) => self.foreground(token, &reply, told),
            Call::Read(task) if !reply.is_error => self.read(task, reply.text(), told),
            Call::Kill(task) if !reply.is_error => self.killed(task, reply.text(), told),
            Call::List => self.listed(reply.text()),
            Call::Look(task) if !reply.is_error => self.looked(task, reply.text()),
            Call::Read(_) | Call::Kill(_) | Call::Look(_) => {}
        }
        // A notice goes out with the result, so what the result tells comes first.
        for notice in reply.notices() {
            self.noticed(notice, told);
        }
        self.answers.insert(id, reply);
    }

    fn foreground(&mut self, token: &str, reply: &Reply, told: Told) {
        if reply.is_error && reply.text().starts_with("Error: ") {
            return;
        }
        self.writes(token, reply.text(), told);
        let adopted = reply.text().split("adopted as background task ").nth(1);
        if let Some(task) = adopted.and_then(|rest| rest.split(']').next()) {
            self.is_of(task, token);
        }
    }

    fn read(&mut self, task: &str, text: &str, told: Told) {
        let (text, status) = text.rsplit_once('\n').unwrap_or(("", text));
        if let Some(token) = self.tasks.get(task).cloned() {
            // The tool ends the text with a line break, which may have been there already.
            self.writes(&token, &format!("{text}\n"), told);
        }
        self.shown(task, status, Some(told));
    }

    fn killed(&mut self, task: &str, text: &str, told: Told) {
        if let Some((_, status)) = text.split_once(" had already finished ") {
            self.shown(task, status, Some(told));
        } else if text == format!("requested cancellation of task {task}") {
            let kill = &mut self.ends.entry(task.to_owned()).or_default().kill;
            if *kill != Some(Told::Surely) {
                *kill = Some(told);
            }
        } else {
            self.faults
                .push(format!("a kill of {task} was answered with {text:?}"));
        }
    }

    fn listed(&mut self, text: &str) {
        for row in text.lines().filter(|row| row.contains(" — ")) {
            let (id, rest) = row.split_once(' ').unwrap_or((row, ""));
            if let Some(token) = rest.split_once(" — ").and_then(|(_, label)| token(label)) {
                self.is_of(id, &token);
            }
        }
    }

    fn looked(&mut self, task: &str, text: &str) {
        let (text, status) = text.rsplit_once('\n').unwrap_or(("", text));
        let token = self.tasks.get(task).cloned();
        // Nothing is consumed: an account of its own. The place where a long one is cut is anywhere.
        let whole = !text.is_empty() && !text.contains("are not shown]");
        if let Some(token) = token.filter(|_| whole) {
            let looked = Account::new(&token).told(&format!("{text}\n"), Told::Surely);
            self.faults.extend(looked.err());
        }
        self.shown(task, status, None);
    }

    /// Notices come, one or more.
    pub(super) fn noticed(&mut self, block: &str, told: Told) {
        for line in block.lines().filter(|line| line.starts_with("background task ")) {
            let id = line.split(' ').nth(2).unwrap_or_default().to_owned();
            if line.contains(" has printed nothing for ") {
                self.silent(&id);
                continue;
            }
            let status = line
                .rsplit_once(" finished ")
                .and_then(|(_, rest)| rest.split_once("]. "));
            let Some((status, _)) = status else {
                self.faults.push(format!("a notice of its own kind: {line:?}"));
                continue;
            };
            // The kind, and the label behind it.
            let label = line.split_once(" (").and_then(|(_, rest)| rest.split_once(": "));
            if let Some(token) = label.and_then(|(_, label)| token(label)) {
                self.is_of(&id, &token);
            }
            let ends = self.ends.entry(id.clone()).or_default();
            let status = format!("{status}]");
            let as_asked = !status.starts_with("[status: failed") && !status.contains("survived");
            if ends.surely || ends.kill == Some(Told::Surely) && as_asked {
                self.faults
                    .push(format!("{id} had been told of, and again: {line:?}"));
            } else if ends.notices > 0 {
                self.faults.push(format!("a second notice: {line:?}"));
            }
            if told == Told::Surely {
                ends.notices += 1;
            } else {
                ends.maybe = true;
            }
            self.shown(&id, &status, None);
        }
    }

    /// A silence is no news of a task whose end was told.
    fn silent(&mut self, id: &str) {
        if self.ends.get(id).is_some_and(|ends| ends.surely) {
            self.faults
                .push(format!("{id} has ended, and is told to be silent"));
        }
    }

    fn writes(&mut self, token: &str, text: &str, told: Told) {
        let Some(account) = self.accounts.get_mut(token) else {
            self.faults
                .push(format!("output of {token}, whom nobody started"));
            return;
        };
        match account.told(text, told) {
            Ok(elsewhere) => {
                let wrong = elsewhere.iter().filter_map(|file| is_there(account, file).err());
                self.faults.extend(wrong);
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    /// A task was started, in this very process.
    pub(super) fn starts(&mut self, task: &str, token: &str) {
        self.accounts.insert(token.to_owned(), Account::new(token));
        self.is_of(task, token);
    }

    /// A status line was shown.
    pub(super) fn shown(&mut self, task: &str, status: &str, told: Option<Told>) {
        if !status.starts_with("[status: ") {
            self.faults
                .push(format!("{task} was shown with the status {status:?}"));
            return;
        }
        if status.starts_with("[status: running") || status.starts_with("[status: stopping") {
            return;
        }
        let ends = self.ends.entry(task.to_owned()).or_default();
        match &ends.end {
            Some(end) if end != status => {
                self.faults.push(format!("{task} ended as {end} and as {status}"));
            }
            Some(_) | None => ends.end = Some(status.to_owned()),
        }
        match told {
            Some(Told::Surely) => ends.surely = true,
            Some(Told::Maybe) => ends.maybe = true,
            None => {}
        }
    }

    fn is_of(&mut self, task: &str, token: &str) {
        match self.tasks.get(task) {
            Some(other) if other != token => {
                self.faults.push(format!("{task} is of {other} and of {token}"));
            }
            Some(_) => {}
            None if !self.accounts.contains_key(token) => {
                self.faults
                    .push(format!("{task} is of {token}, whom this client has not started"));
            }
            None => _ = self.tasks.insert(task.to_owned(), token.to_owned()),
        }
    }
}

impl Ends {
    fn is_told(&self) -> bool {
        let Some(end) = &self.end else { return true };
        let as_asked = !end.starts_with("[status: failed") && !end.contains("survived");
        self.surely || self.maybe || self.notices > 0 || self.kill.is_some() && as_asked
    }
}

/// The token that a command begins with.
fn token(label: &str) -> Option<String> {
    let token = label.strip_prefix(": ")?.split(';').next()?;
    Some(token.to_owned())
}

/// Whether a file has what the note says.
fn is_there(account: &Account, file: &Elsewhere) -> Result<(), String> {
    // A name that is gone again says nothing, and a record that is gone takes its file along.
    let Ok(bytes) = std::fs::read(&file.path) else {
        return Ok(());
    };
    let there = bytes.get(file.there.start as usize..file.there.end as usize);
    if there.is_some_and(|there| there == account.content(file.bytes.clone())) {
        Ok(())
    } else {
        Err(format!("{file:?} is not what was left out"))
    }
}

/// The sides of a writer.
pub(super) const SIDES: [Side; 2] = [Side::Out, Side::Err];

#[cfg(test)]
mod tests;
