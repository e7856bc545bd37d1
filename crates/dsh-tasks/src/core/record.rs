//! The life of one task.
//!
//! # Invariants
//!
//! 1. `end` is set once; later ends are ignored. A record with an end is terminal, one without is live.
//! 2. `Running → Stopping` is the only write of a status besides the end.
//! 3. `announced` is set once, only on a terminal record, and never while a claim is live, unless the record is being
//!    torn down. Setting it emits the one done event.
//! 4. Every claim that was counted is taken back exactly once, by its delivery or by its abandonment.

use std::sync::Arc;

use dsh_session::SessionId;

use crate::{
    id::{Kind, TaskId},
    outcome::{CancelRequest, Cause, Outcome, OutcomeStatus, Survivor},
    snapshot::{TaskSnapshot, TaskStatus},
    vocabulary::Vocabulary,
};

use super::{Cursor, Owner};

/// What a task is from its start on.
#[derive(Debug, Clone)]
pub struct Facts {
    pub kind: Kind,
    pub label: Arc<str>,
    pub output_limit_bytes: Option<u64>,
}

/// What somebody is about to tell the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// That the task has ended.
    End,
    /// That its end was asked for.
    Kill,
}

/// How a caller stands to a task that it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is the caller's, or nobody's.
    Own,
    /// It is of somebody who works for the caller. The caller looks on: it takes no output from the owner, and no news.
    Above,
}

/// Who decided how a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its producer.
    Producer,
    /// The registry, which could not wait any longer.
    Forced,
}

/// How far the done event has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// Its listeners were called; some are not done.
    Called,
    /// Its listeners are done: no notice will come any more.
    Over,
}

#[derive(Debug)]
pub struct Record<W> {
    pub id: TaskId,
    /// What callers call it: its id, except for a task of an earlier harness, whose id somebody else may have here.
    pub name: TaskId,
    /// Where it is in the order of registration.
    pub place: u64,
    pub owner: Option<Owner>,
    pub cursor: Cursor,
    /// What the shell keeps per task.
    pub work: W,
    facts: Facts,
    started_at: u64,
    stopping: bool,
    request: Option<CancelRequest>,
    end: Option<Box<End>>,
    /// Live claims: of the end (also of a wait for it), of a kill.
    end_claims: usize,
    kill_claims: usize,
    /// The end was delivered.
    told: bool,
    /// An accepted kill was delivered.
    kill_told: bool,
    /// A disposal has claimed the report.
    torn_down: bool,
    announced: bool,
    dispatched: Option<Dispatched>,
}

#[derive(Debug)]
struct End {
    status: OutcomeStatus,
    detail: Option<String>,
    output: Option<String>,
    survivors: Vec<Survivor>,
    finished_at: u64,
    verdict: Verdict,
}

impl<W> Record<W> {
    pub fn new(id: TaskId, place: u64, owner: Option<Owner>, facts: Facts, work: W, now: u64) -> Self {
        Self {
            name: id.clone(),
            id,
            place,
            owner,
            cursor: Cursor::default(),
            work,
            facts,
            started_at: now,
            stopping: false,
            request: None,
            end: None,
            end_claims: 0,
            kill_claims: 0,
            told: false,
            kill_told: false,
            torn_down: false,
            announced: false,
            dispatched: None,
        }
    }

    /// Says that the end was told before this record was made.
    pub fn was_told(&mut self) {
        self.told = true;
        self.announced = true;
        self.dispatched = Some(Dispatched::Over);
    }

    /// How this caller stands to it; nothing for one that may not use it.
    pub fn standing(&self, caller: Option<&SessionId>) -> Option<Standing> {
        match (&self.owner, caller) {
            (None, _) => Some(Standing::Own),
            (Some(owner), Some(caller)) if owner.session == *caller => Some(Standing::Own),
            (Some(owner), Some(caller)) if owner.above.contains(caller) => Some(Standing::Above),
            (Some(_), _) => None,
        }
    }

    pub fn is_terminal(&self) -> bool {
        self.end.is_some()
    }

    pub fn is_announced(&self) -> bool {
        self.announced
    }

    pub fn is_told(&self) -> bool {
        self.told
    }

    pub fn dispatched(&self) -> Option<Dispatched> {
        self.dispatched
    }

    pub fn is_claimed(&self) -> bool {
        self.end_claims + self.kill_claims > 0
    }

    pub fn started_at(&self) -> u64 {
        self.started_at
    }

    pub fn set_dispatched(&mut self, how: Dispatched) {
        self.dispatched = Some(how);
    }

    pub fn final_output(&self) -> Option<&str> {
        self.end.as_ref()?.output.as_deref()
    }

    /// Takes the first end; `false` when there was one already.
    pub fn settle(&mut self, outcome: Outcome, verdict: Verdict, now: u64, words: Vocabulary) -> bool {
        if self.end.is_some() {
            return false;
        }
        let cause_told = match (&outcome.cause, &self.request, outcome.status) {
            (Some(cause), ..) => Some(cause.clone()),
            // What was asked for explains a killed task; one that ended by itself needs no explanation.
            (None, Some(request), OutcomeStatus::Killed) => Some(request.cause.clone()),
            (None, ..) => None,
        };
        if let Some(cause) = &outcome.cause {
            self.request = Some(CancelRequest {
                cause: cause.clone(),
                reason: self.request.take().and_then(|request| request.reason),
            });
        }
        let facts = [
            outcome.detail,
            cause_told.and_then(|cause| cause_text(&cause, words)),
            Survivor::phrase(&outcome.survivors),
        ];
        self.end = Some(Box::new(End {
            status: outcome.status,
            detail: joined(facts),
            output: outcome.output,
            survivors: outcome.survivors,
            finished_at: now.max(self.started_at),
            verdict,
        }));
        true
    }

    /// Writes `Stopping`; `true` when that changed the record.
    pub fn stop(&mut self) -> bool {
        let changes = self.end.is_none() && !self.stopping;
        self.stopping |= changes;
        changes
    }

    /// Remembers who asked for the end; the first to ask stays. `true` when this one was the first.
    pub fn ask(&mut self, request: CancelRequest) -> bool {
        let first = self.request.is_none();
        if first {
            self.request = Some(request);
        }
        first
    }

    /// Forgets who asked, if that came to nothing and nobody else has asked with success meanwhile.
    pub fn unask(&mut self) {
        if self.end.is_none() && !self.stopping {
            self.request = None;
        }
    }

    pub fn tear_down(&mut self) {
        self.torn_down = true;
    }

    pub fn claim(&mut self, what: Told) {
        *self.claims(what) += 1;
    }

    pub fn deliver(&mut self, what: Told) {
        *self.claims(what) -= 1;
        match what {
            Told::End => self.told = true,
            Told::Kill => self.kill_told = true,
        }
    }

    pub fn abandon(&mut self, what: Told) {
        *self.claims(what) -= 1;
    }

    /// Announces the end if it is due: the one time that this says `true`, the done event is to be emitted.
    pub fn announce(&mut self) -> bool {
        let due = self.end.is_some() && !self.announced && (self.torn_down || !self.is_claimed());
        self.announced |= due;
        due
    }

    pub fn snapshot(&self) -> TaskSnapshot {
        let end = self.end.as_ref();
        let bytes = end.and_then(|end| end.output.as_ref()).map_or(0, String::len);
        TaskSnapshot {
            id: self.name.clone(),
            kind: self.facts.kind.clone(),
            label: self.facts.label.clone(),
            output_limit_bytes: self.facts.output_limit_bytes,
            owner: self.owner.as_ref().map(|owner| owner.session.clone()),
            status: self.status(),
            detail: end.and_then(|end| end.detail.clone()),
            live_detail: None,
            cause: self.request.as_ref().map(|request| request.cause.clone()),
            reason: self.request.as_ref().and_then(|request| request.reason.clone()),
            survivors: end.map(|end| end.survivors.clone()).unwrap_or_default(),
            started_at: self.started_at,
            finished_at: end.map(|end| end.finished_at),
            reported: self.reported(),
            bytes: bytes as u64,
        }
    }

    fn status(&self) -> TaskStatus {
        match &self.end {
            Some(end) => end.status.into(),
            None if self.stopping => TaskStatus::Stopping,
            None => TaskStatus::Running,
        }
    }

    fn reported(&self) -> bool {
        let kill = self.kill_told || self.kill_claims > 0;
        match &self.end {
            None => self.torn_down || kill,
            Some(end) => self.torn_down || self.told || self.end_claims > 0 || (kill && end.is_as_asked()),
        }
    }

    fn claims(&mut self, what: Told) -> &mut usize {
        match what {
            Told::End => &mut self.end_claims,
            Told::Kill => &mut self.kill_claims,
        }
    }
}

impl End {
    /// Whether who asked for this end has nothing new to learn from it.
    fn is_as_asked(&self) -> bool {
        self.verdict == Verdict::Producer && self.status != OutcomeStatus::Failed && self.survivors.is_empty()
    }
}

fn cause_text(cause: &Cause, words: Vocabulary) -> Option<String> {
    match cause {
        Cause::Caller => None,
        Cause::Ancestor => Some("killed by parent agent".to_owned()),
        Cause::OwnerDisposed => Some(OWNER_DISPOSED.to_owned()),
        Cause::ServiceDisposed => Some(words.service_disposed().to_owned()),
        Cause::Deadline(ms) => Some(format!("timed out after {ms}ms")),
    }
}

/// The reason a task is given when its owner ends.
pub const OWNER_DISPOSED: &str = "owner disposed";

fn joined(facts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| facts.join("; "))
}
