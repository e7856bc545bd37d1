//! The tool over the real pipeline, the real registry and real shells.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod harness;
mod played;

mod background;
mod cards;
mod foreground;
mod hung;
mod leftover;
mod requests;
mod stall;
mod surface;
mod survivors;
