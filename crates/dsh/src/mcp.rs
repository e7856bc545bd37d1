//! `dsh mcp`: the MCP server over this process' stdin and stdout.

use std::os::fd::{AsFd, BorrowedFd};

use dsh_agent_core::Config;

use rustix::fs::OFlags;

use crate::Failure;
use crate::services;
use crate::signals::{Hangup, Signals};

/// Serves until the client closes its end or a signal comes, ends everything that was started, and returns the
/// exit code: 0 after end of input, 128 and the signal's number after a signal.
pub(crate) async fn run(config: Config, hangup: Hangup) -> Result<u8, Failure> {
    let (signals, watcher) = Signals::listen(hangup)?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    for descriptor in [input.as_fd(), output.as_fd()] {
        block(descriptor)?;
    }
    let core = services::assemble(config)?;
    let work = async {
        let served = dsh_mcp::serve(
            &core,
            tokio::io::stdin(),
            tokio::io::stdout(),
            signals.stop.clone(),
        )
        .await;
        core.shutdown().await;
        served
    };
    let served = tokio::select! {
        served = work => served,
        never = watcher => match never {},
        never = signals.hurry_when_told(&core) => match never {},
    };
    served?;
    Ok(signals.exit_code())
}

/// Makes the descriptor a blocking one. A client may have handed over its own, non-blocking; the runtime reads and
/// writes standard streams on threads that would take "try again" for the end.
fn block(descriptor: BorrowedFd<'_>) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    if flags.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(descriptor, flags - OFlags::NONBLOCK)?;
    }
    Ok(())
}
