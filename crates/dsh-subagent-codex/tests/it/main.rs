//! The provider with an app server that is played by a shell: what it does with a process.
#![expect(
    clippy::expect_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod admission;
mod dispose;
mod ends;
mod played;
mod several;
mod startup;
mod turns;
