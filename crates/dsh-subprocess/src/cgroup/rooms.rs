//! The cgroups of commands in one home, made ahead.
//!
//! One is taken for each command. When the command has ended its cgroup is removed and another one is made in its
//! place, so that neither is done while somebody waits for a start or an end.
//!
//! One lock, held over no system call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::command::Cgroup;
use super::home::Home;

/// How many may be ready. More are made as they are needed.
const READY: usize = 8;

/// What is in a home. Removed with it, when nobody has one of its rooms any more.
#[derive(Debug)]
pub(crate) struct Rooms {
    home: Home,
    state: Mutex<State>,
}

/// A cgroup that a command has for itself. Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    number: u32,
    cgroup: Cgroup,
    rooms: Arc<Rooms>,
}

#[derive(Debug, Default)]
struct State {
    next: u32,
    ready: Vec<u32>,
    /// Those that could not be removed yet.
    left: Vec<u32>,
}

impl Rooms {
    pub(crate) fn new(home: Home) -> Rooms {
        Rooms {
            home,
            state: Mutex::default(),
        }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// A room that nobody had before; none where the system makes none now.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Room> {
        self.home.thaw();
        // Opened only now: what is ready is to hold no descriptor.
        let number = self.lock().ready.pop();
        let number = number.or_else(|| self.make())?;
        let cgroup = self.home.find(number).ok();
        if cgroup.is_none() {
            self.lock().left.push(number);
        }
        Some(Room {
            number,
            cgroup: cgroup?,
            rooms: Arc::clone(self),
        })
    }

    fn make(&self) -> Option<u32> {
        let number = {
            let mut state = self.lock();
            let number = state.next;
            state.next = number.wrapping_add(1);
            number
        };
        self.home.make(number).ok().map(|()| number)
    }

    fn discard(&self, number: u32) {
        let mut left = std::mem::take(&mut self.lock().left);
        left.push(number);
        // Who lives in a cgroup that its tree is said to be over for was put there since.
        left.retain(|number| self.home.discard(*number).is_err());
        let wanted = {
            let mut state = self.lock();
            state.left.append(&mut left);
            state.ready.len() < READY
        };
        if let Some(number) = wanted.then(|| self.make()).flatten() {
            self.lock().ready.push(number);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Rooms {
    fn drop(&mut self) {
        // The supervisor may be faster. What stays is for the next program that makes cgroups in the same place.
        if let Err(error) = self.home.remove() {
            tracing::warn!(%error, "cannot remove the cgroups of commands");
        }
    }
}

impl Room {
    /// Lets go on whom a command has frozen, here or together with all commands.
    pub(crate) fn thaw(&self) {
        self.cgroup.thaw();
        self.rooms.home.thaw();
    }

    /// Where it is below the base.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.rooms.home.name(), self.number)
    }
}

impl std::ops::Deref for Room {
    type Target = Cgroup;

    fn deref(&self) -> &Cgroup {
        &self.cgroup
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.rooms.discard(self.number);
    }
}
