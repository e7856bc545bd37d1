//! The log of this process: on stderr, and never in anybody's way.

use std::io::{IsTerminal, stderr};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// What is logged when `RUST_LOG` says nothing. The SDK of MCP warns of every error it answers, which is no news.
const DEFAULT: &str = "warn,rmcp=error";

/// How many lines may wait for a stderr that nobody reads. Further ones are dropped.
const WAITING_LINES: usize = 4096;

/// The SDK of ACP logs what it got as it came, ids and methods of strangers included, which may be secrets: its warnings are
/// kept out, whatever `RUST_LOG` asks of everybody. Who wants them names one of its modules there.
const QUIET: &str = "agent_client_protocol=error";

/// Sends logs to stderr, filtered by `RUST_LOG`: stdout belongs to the command's output.
///
/// Lines are written by a thread of their own. Whoever started this process may never read its stderr; then lines are
/// lost, and nothing waits for them. Dropping the guard writes what is waiting, for a second at most.
pub(crate) fn to_stderr() -> WorkerGuard {
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING_LINES)
        .lossy(true)
        .finish(stderr());
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let filter = match QUIET.parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(stderr().is_terminal())
        .with_writer(writer)
        .init();
    guard
}
