//! The rules of a log, as a pure state machine.
//!
//! # Invariants
//!
//! 1. Every event lies between a `turn/start` and its `turn/end`; steps lie within turns; numbers increase, and one is
//!    left for the next turn. A `model/choice` alone stands anywhere: it is made whenever somebody makes it, and no model
//!    sees it.
//! 2. A step is `step/start`, at most one `request/header`, at most one `assistant/message`, what its calls did, user
//!    messages, `step/end`; in this order. So what is logged before `step/start` is what the model has seen when it
//!    answers.
//! 3. Each call of an answer has exactly one result before anything else that the model reads, and before `step/end`.
//!    The calls of an interrupted answer are never run.
//! 4. Each event is read back from a file exactly as it was.

use std::collections::BTreeSet;

use dsh_llm::{AssistantBlock, CallId, ContentBlock};

use crate::{AppendError, ErrorInfo, EventData, Ordinal, TurnEnd, lossless::lossless};

/// Result of a call that a crash has left without one.
const CRASHED: &str = "Tool call interrupted by a crash; no result was recorded.";

/// Result of a call whose turn ended without one in a harness that lives on. It may have run or not.
const CUT_OFF: &str = "Tool call cut off by the end of its turn; no result was recorded.";

/// What is open in a log.
///
/// ```
/// use dsh_session::{AppendError, Enclosure, EventData, TurnEnd, TurnTrigger};
///
/// let mut enclosure = Enclosure::default();
/// let start = |turn| EventData::TurnStart { turn, trigger: TurnTrigger::Message };
/// enclosure.admit(&start(1))?;
/// let refused = enclosure.admit(&start(2));
/// assert_eq!(refused, Err(AppendError::TurnOpen { kind: "turn/start", turn: 1 }));
/// assert_eq!(enclosure.closers(TurnEnd::Interrupted), [EventData::TurnEnd { turn: 1, reason: TurnEnd::Interrupted }]);
/// # Ok::<(), AppendError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Enclosure {
    last_turn: u64,
    turn: Option<OpenTurn>,
}

#[derive(Debug, Clone)]
struct OpenTurn {
    number: u64,
    last_step: u64,
    step: Option<OpenStep>,
}

#[derive(Debug, Clone)]
struct OpenStep {
    number: u64,
    stage: Stage,
}

/// How far a step is.
#[derive(Debug, Clone)]
enum Stage {
    Started,
    HasHeader,
    Answered { open: Vec<OpenCall> },
}

/// A call without a result.
#[derive(Debug, Clone)]
struct OpenCall {
    id: CallId,
    running: bool,
}

impl Enclosure {
    /// Takes the next event of the log.
    ///
    /// # Errors
    ///
    /// An [`AppendError`] when it may not stand here; nothing is changed then.
    pub fn admit(&mut self, data: &EventData) -> Result<(), AppendError> {
        let kind = data.kind();
        lossless(data)?;
        match data {
            EventData::TurnStart { turn, .. } => self.start_turn(kind, *turn),
            EventData::TurnEnd { turn, .. } => self.end_turn(kind, *turn),
            EventData::StepStart { turn, step } => self.open_turn(kind, Some(*turn))?.start(kind, *step),
            EventData::StepEnd { turn, step } => self.open_turn(kind, Some(*turn))?.end(kind, *step),
            EventData::RequestHeader { .. } => self.open_step(kind)?.header(),
            EventData::ModelChoice { .. } => Ok(()),
            EventData::UserMessage(_) => match &self.open_turn(kind, None)?.step {
                Some(step) => step.user_message(kind),
                None => Ok(()),
            },
            EventData::AssistantMessage {
                content, interrupted, ..
            } => self.open_step(kind)?.answer(content, *interrupted),
            EventData::ToolCall { call_id, .. } => self.open_step(kind)?.run(kind, call_id),
            EventData::ToolResult { call_id, .. } => self.open_step(kind)?.settle(kind, call_id),
        }
    }

    /// Number of the last turn; 0 before the first one.
    pub fn last_turn(&self) -> u64 {
        self.last_turn
    }

    /// What ends the open turn for this reason: an error as the result of each unanswered call, which says whether it was
    /// a crash, the end of the step, the end of the turn.
    pub fn closers(&self, reason: TurnEnd) -> Vec<EventData> {
        let Some(turn) = &self.turn else {
            return Vec::new();
        };
        let mut closers = Vec::new();
        if let Some(step) = &turn.step {
            let unanswered = step.open_calls().iter();
            closers.extend(unanswered.map(|call| without_result(&call.id, &reason)));
            closers.push(EventData::StepEnd {
                turn: turn.number,
                step: step.number,
            });
        }
        closers.push(EventData::TurnEnd {
            turn: turn.number,
            reason,
        });
        closers
    }

    /// Ends the open turn with its [`closers`](Self::closers).
    pub(crate) fn close(&mut self, reason: TurnEnd) -> Vec<EventData> {
        let closers = self.closers(reason);
        self.turn = None;
        closers
    }

    fn start_turn(&mut self, kind: &'static str, number: u64) -> Result<(), AppendError> {
        if let Some(open) = &self.turn {
            let turn = open.number;
            return Err(AppendError::TurnOpen { kind, turn });
        }
        increases(kind, Ordinal::Turn(number), Ordinal::Turn(self.last_turn))?;
        if number == u64::MAX {
            return Err(AppendError::LastNumber { kind, turn: number });
        }
        self.last_turn = number;
        self.turn = Some(OpenTurn {
            number,
            last_step: 0,
            step: None,
        });
        Ok(())
    }

    fn end_turn(&mut self, kind: &'static str, number: u64) -> Result<(), AppendError> {
        self.open_turn(kind, Some(number))?.no_step(kind)?;
        self.turn = None;
        Ok(())
    }

    /// The open turn; it has the number that was named, if one was.
    fn open_turn(&mut self, kind: &'static str, named: Option<u64>) -> Result<&mut OpenTurn, AppendError> {
        let turn = self.turn.as_mut().ok_or(AppendError::OutsideTurn { kind })?;
        if let Some(named) = named {
            is_open(kind, Ordinal::Turn(named), Ordinal::Turn(turn.number))?;
        }
        Ok(turn)
    }

    fn open_step(&mut self, kind: &'static str) -> Result<&mut OpenStep, AppendError> {
        let turn = self.open_turn(kind, None)?;
        turn.step.as_mut().ok_or(AppendError::OutsideStep { kind })
    }
}

impl OpenTurn {
    fn start(&mut self, kind: &'static str, number: u64) -> Result<(), AppendError> {
        self.no_step(kind)?;
        increases(kind, Ordinal::Step(number), Ordinal::Step(self.last_step))?;
        self.last_step = number;
        self.step = Some(OpenStep {
            number,
            stage: Stage::Started,
        });
        Ok(())
    }

    fn end(&mut self, kind: &'static str, number: u64) -> Result<(), AppendError> {
        let step = self.step.as_ref().ok_or(AppendError::OutsideStep { kind })?;
        is_open(kind, Ordinal::Step(number), Ordinal::Step(step.number))?;
        step.all_answered(kind)?;
        self.step = None;
        Ok(())
    }

    fn no_step(&self, kind: &'static str) -> Result<(), AppendError> {
        match &self.step {
            Some(open) => Err(AppendError::StepOpen {
                kind,
                step: open.number,
            }),
            None => Ok(()),
        }
    }
}

impl OpenStep {
    fn header(&mut self) -> Result<(), AppendError> {
        match self.stage {
            Stage::Started => {
                self.stage = Stage::HasHeader;
                Ok(())
            }
            Stage::HasHeader | Stage::Answered { .. } => Err(AppendError::LateHeader { step: self.number }),
        }
    }

    fn user_message(&self, kind: &'static str) -> Result<(), AppendError> {
        match self.stage {
            Stage::Started | Stage::HasHeader => Err(AppendError::BeforeAnswer { step: self.number }),
            Stage::Answered { .. } => self.all_answered(kind),
        }
    }

    fn answer(&mut self, content: &[AssistantBlock], interrupted: bool) -> Result<(), AppendError> {
        if let Stage::Answered { .. } = self.stage {
            return Err(AppendError::SecondAnswer { step: self.number });
        }
        let calls = content.iter().filter_map(AssistantBlock::as_tool_call);
        let mut seen = BTreeSet::new();
        let mut open = Vec::new();
        for call in calls.filter(|_| !interrupted) {
            if !seen.insert(&call.id) {
                let call_id = call.id.clone();
                return Err(AppendError::DuplicateCall { call_id });
            }
            open.push(OpenCall {
                id: call.id.clone(),
                running: false,
            });
        }
        self.stage = Stage::Answered { open };
        Ok(())
    }

    fn run(&mut self, kind: &'static str, call_id: &CallId) -> Result<(), AppendError> {
        let mut calls = self.open_calls_mut().iter_mut();
        match calls.find(|call| call.id == *call_id && !call.running) {
            Some(call) => {
                call.running = true;
                Ok(())
            }
            None => Err(no_such_call(kind, call_id)),
        }
    }

    fn settle(&mut self, kind: &'static str, call_id: &CallId) -> Result<(), AppendError> {
        let place = self.open_calls().iter().position(|call| call.id == *call_id);
        let place = place.ok_or_else(|| no_such_call(kind, call_id))?;
        if let Stage::Answered { open } = &mut self.stage {
            open.remove(place);
        }
        Ok(())
    }

    fn all_answered(&self, kind: &'static str) -> Result<(), AppendError> {
        match self.open_calls().first() {
            Some(call) => Err(AppendError::Unanswered {
                kind,
                call_id: call.id.clone(),
            }),
            None => Ok(()),
        }
    }

    fn open_calls(&self) -> &[OpenCall] {
        match &self.stage {
            Stage::Started | Stage::HasHeader => &[],
            Stage::Answered { open } => open,
        }
    }

    fn open_calls_mut(&mut self) -> &mut [OpenCall] {
        match &mut self.stage {
            Stage::Started | Stage::HasHeader => &mut [],
            Stage::Answered { open } => open,
        }
    }
}

fn increases(kind: &'static str, named: Ordinal, last: Ordinal) -> Result<(), AppendError> {
    let (Ordinal::Turn(number) | Ordinal::Step(number)) = named;
    let (Ordinal::Turn(before) | Ordinal::Step(before)) = last;
    if number > before {
        Ok(())
    } else {
        Err(AppendError::NumberTaken { kind, named, last })
    }
}

fn is_open(kind: &'static str, named: Ordinal, open: Ordinal) -> Result<(), AppendError> {
    if named == open {
        Ok(())
    } else {
        Err(AppendError::NotTheOpenOne { kind, named, open })
    }
}

fn no_such_call(kind: &'static str, call_id: &CallId) -> AppendError {
    let call_id = call_id.clone();
    AppendError::NoSuchCall { kind, call_id }
}

/// The result of a call whose turn ended for this reason before it had one.
fn without_result(call_id: &CallId, reason: &TurnEnd) -> EventData {
    let text = match reason {
        TurnEnd::Interrupted => CRASHED,
        TurnEnd::Completed
        | TurnEnd::Aborted { .. }
        | TurnEnd::Disposed
        | TurnEnd::MaxTokens
        | TurnEnd::Error { .. } => CUT_OFF,
    };
    EventData::ToolResult {
        call_id: call_id.clone(),
        content: vec![ContentBlock::text(text)],
        is_error: true,
        error: Some(ErrorInfo {
            name: "InterruptedError".to_owned(),
            code: "interrupted".to_owned(),
        }),
        value: None,
    }
}
