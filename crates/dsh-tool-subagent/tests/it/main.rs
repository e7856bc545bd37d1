//! The tool over the real registries and the real pipeline; only the children are scripts.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod rig;
mod scripted;

mod config;
mod surface;

mod background;
mod follows;
mod foreground;
