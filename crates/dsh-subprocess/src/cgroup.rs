//! A cgroup for each command: what it holds can be ended by one write and seen empty by one read, whoever is left to
//! do so. Linux only, and only where this program may make directories in a cgroup of version 2.
//!
//! ```text
//! base                 this program's own cgroup, or one that was delegated to it
//!  └── dsh-commands-4242-0   the home of what one supervisor guards: locked by it and by this program
//!       ├── 0                 one command
//!       └── 1                 made ahead for another one
//! ```
//!
//! **Invariants**
//!
//! 1. A cgroup is for one command and never used again: the command may have changed it, and the kernel kills whatever
//!    is started in one that was killed before.
//! 2. The leader is born in it (`clone3`). No process is ever moved.
//! 3. This program makes it, and removes it when the tree is over. The home is removed by this program when its last
//!    tree is over, by the supervisor when this program is gone, and by the next program when both are.
//! 4. Whoever is in a home that nobody has locked outlived its guard, its supervisor and its program, and is killed; and
//!    so is, after a while, whoever is in one that only a supervisor has locked.

mod command;
mod files;
mod find;
mod home;
mod left;
mod limits;
mod rooms;

pub(crate) use self::command::{Cgroup, Population};
pub(crate) use self::find::Base;
pub(crate) use self::home::Home;
pub(crate) use self::limits::{Hits, hits, impose, prepare_base, prepare_home};
pub(crate) use self::rooms::{Room, Rooms};
