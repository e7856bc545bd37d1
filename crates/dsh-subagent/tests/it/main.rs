//! What providers, their users and observers can rely on.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod rig;

mod observers;
mod registry;
mod runs;
mod schema;
mod starts;
mod texts;
