//! The agent over a pair of pipes, with an editor that speaks raw lines, scripted models and real commands.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod editor;

mod background;
mod bad_input;
mod cards;
mod ends;
mod permission;
mod prompts;
mod sessions;
