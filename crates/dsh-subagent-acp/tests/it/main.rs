//! Agents that are shells, as subagents.
#![expect(clippy::expect_used, reason = "a test helper that cannot go on ends the test")]

mod agent;

mod ends;
mod failures;
mod runs;
