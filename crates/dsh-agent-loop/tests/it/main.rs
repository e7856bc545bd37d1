//! What an agent does from message to rest, with models that are played.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod batch;
mod create;
mod faults;
mod played;
mod retries;
mod stop;
mod turns;
mod written;
