//! The log from outside: its wire form, its rules, what the model sees of it, its file.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails like a test")]

mod derivation;
mod full_disk;
mod kill;
mod log;
mod recovery;
mod rules;
mod store;
mod support;
