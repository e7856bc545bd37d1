//! What an agent does from message to rest, with models that are played.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod batch;
mod played;
mod stop;
mod turns;
