//! Scripts: what they may hold, how they are answered from, and how they fail.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails like a test")]

mod answers;
mod document;
mod faults;
mod models;
mod replay;
mod support;
