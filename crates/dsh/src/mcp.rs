//! `dsh mcp`: the MCP server over this process' stdin and stdout.

use dsh_agent_core::Config;
use dsh_llm::ModelRegistry;

use crate::signals::{Hangup, Signals};
use crate::{Failure, services, streams};

/// Serves until the client closes its end or a signal comes, ends everything that was started, and returns the
/// exit code: 0 after end of input, 128 and the signal's number after a signal.
pub(crate) async fn run(config: Config, hangup: Hangup) -> Result<u8, Failure> {
    let (signals, watcher) = Signals::listen(hangup)?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    streams::block(&input)?;
    streams::block(&output)?;
    let core = services::assemble(config, ModelRegistry::new())?;
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
