//! Runs of shell scripts that stand for Claude Code: what they read, write and leave is what the product would.

#![expect(clippy::expect_used, reason = "a test helper that cannot go on ends the test")]

mod disposal;
mod outcome;
mod registration;
mod startup;
mod support;
