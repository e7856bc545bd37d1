//! The task tools over the real registry and the real pipeline; only the work is the tests' own.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod support;

mod control;
mod descendants;
mod exactly_once;
mod install;
mod notices;
mod output;
mod surface;
