//! The registry through its public interface, by the sections of its contract.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

mod start;
mod unheard;

mod kill;
mod reads;
mod wait;

mod descendants;
mod isolation;
mod restored;

mod disposal;
mod owner_cleanup;

mod changes;
mod claims;
mod races;
mod snapshots;
mod words;
