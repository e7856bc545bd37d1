//! Agents of the real binary, whose model plays a random script: `dsh run` and `dsh acp`.
//!
//! A life is some programs one after the other, with the same sessions. All but the last one meet accidents and end in any
//! way. The last one ends all that its sessions know of, reads it, and rests; then the log of each session is looked at as a
//! whole. A life is made up before it is lived.

mod acp;
mod editor;
mod log;
mod plan;
mod run;
mod script;
mod stream;

pub(super) use acp::sessions;
pub(super) use run::session;

use super::{Faults, Found, server};
use crate::Room;

/// Configures whatever starts in a room from now on.
fn configure(room: &Room, config: &str) -> Result<(), String> {
    let written = std::fs::write(room.home().join("config.toml"), config);
    written.map_err(|error| format!("no configuration: {error}"))
}

/// What a life was, what is wrong with it, and what its programs have logged.
fn report(room: &Room, about: Vec<String>, faults: Faults) -> Found {
    Found {
        tasks: 0,
        faults: [about, faults, vec![server::log(room)]].concat(),
    }
}

#[cfg(test)]
mod tests;
