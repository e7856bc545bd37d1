//! The server over a pair of pipes, with a client that speaks raw lines and real commands.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod client;

mod bad_input;
mod delivery;
mod handshake;
mod requests;
mod resources;
mod storm;
