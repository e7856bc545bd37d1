//! Real processes under real guards: what a command can do to leave its tree, and what is left then.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails the test"
)]

mod common;
mod killed;
mod trees;

mod adopted;
mod again;
mod attack;
mod blind;
mod cgroup;
mod command;
mod end;
mod escape;
mod frozen;
mod harness;
mod held;
mod hidden;
mod hung;
mod idle;
mod immovable;
mod input;
mod limits;
mod many;
mod outlived;
mod random;
mod reuse;
mod shortage;
mod strange;
