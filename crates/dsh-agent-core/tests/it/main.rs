//! The configuration, and the services put together with real commands.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod assembly;
mod composition;
mod config;
mod lead;
