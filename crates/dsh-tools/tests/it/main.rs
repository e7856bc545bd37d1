//! What a caller of tools can rely on.
#![expect(
    clippy::expect_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod agents;
mod pipeline;
mod policies;
mod schema;
