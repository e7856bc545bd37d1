//! The long checks of guards: what only numbers show.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails the test"
)]

#[expect(dead_code, reason = "the ordinary tests use all of it")]
#[path = "../guarded/common.rs"]
mod common;
#[path = "../guarded/killed.rs"]
mod killed;
#[path = "../guarded/trees.rs"]
mod trees;

mod attack;
mod commands;
mod harness;
mod random;
