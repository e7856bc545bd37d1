//! Every short sequence of what can be done to a desk, against a model that is too simple to be wrong.

use dsh_llm::{ContentBlock, text_of};
use dsh_session::{Message, MessageSource, TurnTrigger};
use tokio_util::sync::CancellationToken;

use super::notice;
use crate::inbox::State;
use crate::{AgentStatus, Stop, WakePolicy};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// A person asks for a turn.
    FollowUp,
    /// A person says something to the open turn.
    Steer,
    /// A machine asks for a turn.
    MachineAsks,
    Inject,
    Seat(WakePolicy),
    Leave,
    /// The driver looks whether it may open a turn.
    Open(Fate),
    Claim(Fate),
    /// The last look of a turn.
    ClaimOrClose,
    Drop,
    Cancel,
    Retire,
}

/// What becomes of the notices that were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Told,
    /// They come back.
    Dropped,
}

/// What an operation showed.
#[derive(Debug, PartialEq, Eq, Default)]
struct Shown {
    trigger: Option<TurnTrigger>,
    taken: Vec<String>,
}

const ONE_WAKE: WakePolicy = WakePolicy::Wake { max_consecutive: 1 };

const ALL: [Operation; 14] = [
    Operation::FollowUp,
    Operation::Steer,
    Operation::MachineAsks,
    Operation::Inject,
    Operation::Seat(ONE_WAKE),
    Operation::Seat(WakePolicy::Quiet),
    Operation::Leave,
    Operation::Open(Fate::Told),
    Operation::Open(Fate::Dropped),
    Operation::Claim(Fate::Told),
    Operation::ClaimOrClose,
    Operation::Drop,
    Operation::Cancel,
    Operation::Retire,
];

/// What a desk should do, told with lists.
#[derive(Clone, Default)]
struct Model {
    history: Vec<Operation>,
    retired: bool,
    driver: Option<WakePolicy>,
    turn: Option<ModelTurn>,
    wakes: u32,
    next_turn: Vec<(String, Who)>,
    next_step: Vec<(String, Who)>,
    notices: Vec<Waiting>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct ModelTurn {
    cancelled: bool,
    over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Person,
    Machine,
}

#[derive(Clone)]
struct Waiting {
    text: String,
    /// Opens no turn.
    muted: bool,
}

impl Model {
    fn status(&self) -> AgentStatus {
        match (self.retired, self.turn) {
            (true, _) => AgentStatus::Disposed,
            (false, Some(_)) => AgentStatus::Running,
            (false, None) => AgentStatus::Idle,
        }
    }

    fn opener(&self) -> Option<TurnTrigger> {
        if self.status() != AgentStatus::Idle {
            return None;
        }
        if !self.next_turn.is_empty() || !self.next_step.is_empty() {
            return Some(TurnTrigger::Message);
        }
        let budget = match self.driver {
            Some(WakePolicy::Wake { max_consecutive }) => max_consecutive,
            Some(WakePolicy::Quiet) | None => 0,
        };
        let fresh = self.notices.iter().any(|notice| !notice.muted);
        (fresh && self.wakes < budget).then_some(TurnTrigger::Notice)
    }

    fn at_rest(&self) -> bool {
        match self.status() {
            AgentStatus::Idle => self.opener().is_none(),
            AgentStatus::Running => false,
            AgentStatus::Disposed => self.driver.is_none(),
        }
    }

    fn stop(&self) -> Option<Stop> {
        if self.retired {
            return Some(Stop::Disposed);
        }
        let reason = "stop".to_owned();
        let stopped = self.turn.is_some_and(|turn| turn.cancelled && !turn.over);
        stopped.then_some(Stop::Cancelled { reason })
    }

    /// An agent refuses what it is asked once it is disposed; a turn is open only while there is a driver.
    fn may(&self, operation: Operation) -> bool {
        match operation {
            Operation::FollowUp | Operation::Steer | Operation::MachineAsks => !self.retired,
            Operation::Seat(_) => !self.retired && self.driver.is_none(),
            Operation::Leave => self.driver.is_some() && self.turn.is_none(),
            Operation::Open(_) => self.driver.is_some() && self.turn.is_none(),
            Operation::Claim(_) | Operation::ClaimOrClose => self.turn.is_some_and(|turn| !turn.over),
            Operation::Drop => self.turn.is_some(),
            Operation::Inject | Operation::Cancel => true,
            Operation::Retire => !self.retired,
        }
    }

    fn apply(&mut self, operation: Operation) -> Shown {
        let text = format!("{}", self.history.len());
        self.history.push(operation);
        match operation {
            Operation::FollowUp => self.next_turn.push((text, Who::Person)),
            Operation::MachineAsks => self.next_turn.push((text, Who::Machine)),
            Operation::Steer => self.next_step.push((text, Who::Person)),
            Operation::Inject => self.notices.push(Waiting { text, muted: false }),
            Operation::Seat(policy) => {
                self.driver = Some(policy);
                self.mute();
            }
            Operation::Leave => self.driver = None,
            Operation::Open(fate) => return self.open(fate),
            Operation::Claim(fate) => {
                let messages = std::mem::take(&mut self.next_step);
                return self.take(None, messages, fate);
            }
            Operation::ClaimOrClose => {
                let messages = std::mem::take(&mut self.next_step);
                let shown = self.take(None, messages, Fate::Told);
                if let Some(turn) = &mut self.turn {
                    turn.over = shown.taken.is_empty() && !turn.cancelled;
                }
                return shown;
            }
            Operation::Drop => {
                if self.turn.take().is_some_and(|turn| turn.cancelled) {
                    self.mute();
                }
            }
            Operation::Cancel => {
                self.next_turn.clear();
                self.next_step.clear();
                if let Some(turn) = &mut self.turn {
                    turn.cancelled = true;
                }
            }
            Operation::Retire => {
                self.next_turn.clear();
                self.next_step.clear();
                self.retired = true;
            }
        }
        Shown::default()
    }

    fn open(&mut self, fate: Fate) -> Shown {
        let Some(trigger) = self.opener() else {
            return Shown::default();
        };
        self.wakes += u32::from(trigger == TurnTrigger::Notice);
        self.turn = Some(ModelTurn::default());
        let mut messages = std::mem::take(&mut self.next_step);
        if !self.next_turn.is_empty() {
            messages.push(self.next_turn.remove(0));
        }
        self.take(Some(trigger), messages, fate)
    }

    fn take(&mut self, trigger: Option<TurnTrigger>, messages: Vec<(String, Who)>, fate: Fate) -> Shown {
        if messages.iter().any(|(_, who)| *who == Who::Person) {
            self.wakes = 0;
        }
        let notices = self.notices.iter().map(|notice| notice.text.clone());
        let taken = notices
            .chain(messages.into_iter().map(|(text, _)| text))
            .collect();
        if fate == Fate::Told {
            self.notices.clear();
        }
        Shown { trigger, taken }
    }

    fn mute(&mut self) {
        self.notices.iter_mut().for_each(|notice| notice.muted = true);
    }
}

/// The real thing.
#[derive(Default)]
struct Real {
    state: State,
    done: usize,
    tokens: Vec<CancellationToken>,
}

impl Real {
    fn apply(&mut self, operation: Operation) -> Shown {
        let text = self.done.to_string();
        self.done += 1;
        let desk = &mut self.state.desk;
        match operation {
            Operation::FollowUp => desk.ask_next_turn(message(&text, MessageSource::User)),
            Operation::MachineAsks => desk.ask_next_turn(notice("m", &text).message),
            Operation::Steer => desk.ask_next_step(message(&text, MessageSource::User)),
            Operation::Inject => drop(self.state.notices.inject(notice(&text, &text))),
            Operation::Seat(policy) => assert!(self.state.seat(policy)),
            Operation::Leave => desk.leave(),
            Operation::Open(fate) => {
                let token = CancellationToken::new();
                let Some((trigger, messages)) = self.state.open_turn(&token) else {
                    return Shown::default();
                };
                self.tokens.push(token);
                let taken = self.take(&messages, fate);
                assert!(!taken.is_empty(), "a turn begins with something");
                let trigger = Some(trigger);
                return Shown { trigger, taken };
            }
            Operation::Claim(fate) => {
                let messages = self.state.take_step();
                return self.shown(&messages, fate);
            }
            Operation::ClaimOrClose => {
                let messages = self.state.take_step();
                let shown = self.shown(&messages, Fate::Told);
                if shown.taken.is_empty() {
                    self.state.desk.end_turn();
                }
                return shown;
            }
            Operation::Drop => self.state.close_turn(),
            Operation::Cancel => {
                if let Some(token) = desk.cancel("stop") {
                    token.cancel();
                }
            }
            Operation::Retire => drop(desk.retire()),
        }
        Shown::default()
    }

    fn shown(&mut self, messages: &[Message], fate: Fate) -> Shown {
        let taken = self.take(messages, fate);
        Shown { trigger: None, taken }
    }

    fn take(&mut self, messages: &[Message], fate: Fate) -> Vec<String> {
        let (places, notices) = self.state.notices.lease();
        let all = notices.iter().chain(messages);
        let taken = all.map(|message| text_of(&message.content)).collect();
        match fate {
            Fate::Told => self.state.notices.commit(&places),
            Fate::Dropped => drop(self.state.notices.give_back(places.into_iter().zip(notices))),
        }
        taken
    }
}

fn message(text: &str, source: MessageSource) -> Message {
    let content = vec![ContentBlock::text(text)];
    Message { content, source }
}

fn run_sequence(sequence: &[Operation]) {
    let (mut model, mut real) = (Model::default(), Real::default());
    for &operation in sequence {
        let context = || format!("after {operation:?} in {sequence:?}");
        assert_eq!(real.apply(operation), model.apply(operation), "{}", context());
        let state = &real.state;
        assert_eq!(state.desk.status(), model.status(), "{}", context());
        assert_eq!(state.at_rest(), model.at_rest(), "{}", context());
        assert_eq!(state.desk.stop(), model.stop(), "{}", context());
        assert_eq!(state.notices.visible(), model.notices.len(), "{}", context());
        if let (Some(turn), Some(token)) = (model.turn, real.tokens.last()) {
            assert_eq!(
                token.is_cancelled(),
                turn.cancelled && !turn.over,
                "{}",
                context()
            );
        }
    }
}

/// From a driver that has taken its seat, or from nothing, every sequence that is possible.
fn every_sequence(begin: &[Operation], length: usize) -> usize {
    let mut first = Model::default();
    for &operation in begin {
        first.apply(operation);
    }
    let mut todo = vec![first];
    let mut run = 0;
    while let Some(model) = todo.pop() {
        if model.history.len() == begin.len() + length {
            run_sequence(&model.history);
            run += 1;
            continue;
        }
        for operation in ALL.into_iter().filter(|operation| model.may(*operation)) {
            let mut longer = model.clone();
            longer.apply(operation);
            todo.push(longer);
        }
    }
    run
}

#[test]
fn from_nothing_every_sequence_of_five() {
    assert_eq!(every_sequence(&[], 5), 27_264);
}

#[test]
fn with_a_driver_every_sequence_of_five() {
    assert_eq!(every_sequence(&[Operation::Seat(ONE_WAKE)], 5), 37_716);
}

#[test]
fn within_a_turn_every_sequence_of_five() {
    let begin = [
        Operation::Seat(ONE_WAKE),
        Operation::FollowUp,
        Operation::Open(Fate::Told),
    ];
    assert_eq!(every_sequence(&begin, 5), 37_296);
}
