//! How a connection ends.
//!
//! What a client does to end one is the same whatever is spoken over it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

use super::dice::Dice;
use super::facts::signal;
use crate::Room;

/// The client's end of a connection.
pub(super) trait Client {
    /// Ends the input of the server.
    fn close_input(&mut self);
    /// Reads no more: the output of the server is closed.
    async fn close_output(&mut self);
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// When all is quiet, its input ends.
    Quiet,
    /// In the middle, its input ends.
    Input,
    /// In the middle, nobody reads its output any more; then its input ends.
    Output,
    /// In the middle, by this signal, which it takes for a request.
    Terminated,
    Interrupted,
    /// In the middle, by a signal that it cannot take.
    Killed,
}

impl Ending {
    pub(super) fn any(dice: &mut Dice) -> Ending {
        // Only a quiet end shows that everything was told.
        const OTHERS: [Ending; 5] = [
            Ending::Input,
            Ending::Output,
            Ending::Terminated,
            Ending::Interrupted,
            Ending::Killed,
        ];
        let other = *dice.pick(&OTHERS);
        if dice.percent(50) { Ending::Quiet } else { other }
    }

    /// Whether it comes in the middle of everything.
    pub(super) fn is_abrupt(self) -> bool {
        self != Ending::Quiet
    }

    pub(super) async fn begins(self, client: &mut impl Client, room: &Room, server: u32) {
        match self {
            Ending::Quiet | Ending::Input => client.close_input(),
            Ending::Output => {
                client.close_output().await;
                client.close_input();
            }
            Ending::Terminated => _ = signal(room, server, Signal::TERM),
            Ending::Interrupted => _ = signal(room, server, Signal::INT),
            Ending::Killed => _ = signal(room, server, Signal::KILL),
        }
    }

    /// Whether a server ends in this way then.
    pub(super) fn fits(self, status: ExitStatus) -> bool {
        match self {
            Ending::Quiet | Ending::Input => status.code() == Some(0),
            // Whether it meets the closed pipe first is a race.
            Ending::Output => status.code().is_some(),
            Ending::Terminated => status.code() == Some(143),
            Ending::Interrupted => status.code() == Some(130),
            Ending::Killed => status.signal() == Some(9),
        }
    }
}
