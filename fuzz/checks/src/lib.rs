//! What must hold for any input.
//!
//! Each module has one `check`, which takes bytes, makes an input of them, and panics when a promise is broken. A fuzz
//! target calls it with bytes that it makes up, and the test `corpus` with those that are kept in `fuzz/corpus`. What a
//! check compares with is written here and knows nothing of the code it looks at.
//!
//! ```
//! checks::config::check(b"0[tasks]\nmax_concurrent_tasks_per_owner = 0\n");
//! ```

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a check fails by panicking, as tests do"
)]

mod input;

pub mod answer;
pub mod arguments;
pub mod config;
pub mod lines;
pub mod output;
pub mod session;

/// A check.
pub type Check = fn(&[u8]);

/// All of them, by the names of their targets and corpora.
pub const CHECKS: [(&str, Check); 6] = [
    ("answer", answer::check),
    ("arguments", arguments::check),
    ("config", config::check),
    ("lines", lines::check),
    ("output", output::check),
    ("session", session::check),
];
