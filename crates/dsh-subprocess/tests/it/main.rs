//! Real processes: what a tree is started with, how its end is seen, how it is ended, who owns it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails the test"
)]

mod common;

mod alone;
mod end;
mod ownership;
mod reuse;
mod start;
mod terminate;
