//! Every interleaving of a driver that comes to rest with a notice that comes, step by step; each step is what one
//! takes the lock for. The naive order, which looks and then rests, must fail.

use dsh_session::Message;
use tokio_util::sync::CancellationToken;

use super::notice;
use crate::inbox::State;
use crate::{AgentStatus, WakePolicy};

/// Everything that driver and sender share.
struct Shared {
    state: State,
    /// How often who waits was woken.
    ticks: usize,
    told: usize,
}

/// One who does something step by step.
trait Actor {
    /// The next step; `false` when it cannot go on (now, or at all).
    fn step(&mut self, shared: &mut Shared) -> bool;
}

/// Sends a notice.
#[derive(Default)]
struct Sender {
    done: usize,
}

impl Actor for Sender {
    fn step(&mut self, shared: &mut Shared) -> bool {
        match self.done {
            0 => drop(shared.state.notices.inject(notice("n", "n"))),
            1 => shared.ticks += 1,
            _ => return false,
        }
        self.done += 1;
        true
    }
}

/// The driver at the end of a turn: the last look, the end of the turn, the wait for the next one.
enum Driver {
    Looks,
    Closes,
    /// Subscribed before it looks.
    Waits {
        seen: usize,
    },
    Parked {
        seen: usize,
    },
    Subscribes,
}

impl Actor for Driver {
    fn step(&mut self, shared: &mut Shared) -> bool {
        *self = match *self {
            Self::Looks => match take(shared) {
                0 => {
                    shared.state.desk.end_turn();
                    Self::Closes
                }
                _ => Self::Looks,
            },
            Self::Closes => {
                shared.state.close_turn();
                Self::Subscribes
            }
            Self::Subscribes => Self::Waits { seen: shared.ticks },
            Self::Waits { seen } => match shared.state.open_turn(&CancellationToken::new()) {
                Some(_) => {
                    take(shared);
                    Self::Looks
                }
                None => Self::Parked { seen },
            },
            Self::Parked { seen } if seen == shared.ticks => return false,
            Self::Parked { .. } => Self::Waits { seen: shared.ticks },
        };
        true
    }
}

/// Looks whether anything is left, says that the agent is idle, and waits for whatever comes from then on.
enum Naive {
    Looks,
    Rests,
    Parked { seen: usize },
}

impl Actor for Naive {
    fn step(&mut self, shared: &mut Shared) -> bool {
        *self = match *self {
            Self::Looks => match take(shared) {
                0 => Self::Rests,
                _ => Self::Looks,
            },
            Self::Rests => {
                shared.state.close_turn();
                Self::Parked { seen: shared.ticks }
            }
            Self::Parked { seen } if seen == shared.ticks => return false,
            Self::Parked { .. } => match shared.state.open_turn(&CancellationToken::new()) {
                Some(_) => Self::Looks,
                None => Self::Parked { seen: shared.ticks },
            },
        };
        true
    }
}

fn take(shared: &mut Shared) -> usize {
    let (places, messages) = shared.state.notices.lease();
    shared.state.notices.commit(&places);
    shared.told += messages.len();
    messages.len()
}

/// Runs the two in the order of these bits, then until neither can go on. Says whether the notice was told, once, and
/// the agent came to rest.
fn is_right(mut driver: impl Actor, order: u32, steps: u32) -> bool {
    let mut shared = Shared {
        state: State::default(),
        ticks: 0,
        told: 0,
    };
    assert!(shared.state.seat(WakePolicy::default()));
    shared.state.desk.ask_next_turn(Message::user("go"));
    assert!(shared.state.open_turn(&CancellationToken::new()).is_some());
    let mut sender = Sender::default();
    for step in 0..steps {
        match order >> step & 1 {
            0 => driver.step(&mut shared),
            _ => sender.step(&mut shared),
        };
    }
    while driver.step(&mut shared) || sender.step(&mut shared) {}
    shared.told == 1 && shared.state.desk.status() == AgentStatus::Idle && shared.state.at_rest()
}

/// Longer than driver and sender together need.
const STEPS: u32 = 12;

#[test]
fn a_notice_that_meets_the_end_of_a_turn_is_told_in_every_order() {
    for order in 0..1 << STEPS {
        assert!(is_right(Driver::Looks, order, STEPS), "{order:b}");
    }
}

#[test]
fn looking_and_then_resting_is_refuted() {
    let lost = (0..1 << STEPS).filter(|order| !is_right(Naive::Looks, *order, STEPS));
    assert!(
        lost.count() > 0,
        "the naive order loses no notice: the test above proves nothing"
    );
}
