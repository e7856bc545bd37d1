//! The seam with an executor that the test plays by hand.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod played;

mod limits;
mod run;
