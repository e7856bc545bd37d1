//! The executor against real shells.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod fixture;

mod background;
mod configuration;
mod environment;
mod foreground;
mod guarded;
mod host;
mod output;
mod trees;
