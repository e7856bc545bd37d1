//! `dsh mcp`: the MCP server over this process' stdin and stdout.

use dsh_agent_core::{AgentCore, Config};

use crate::Failure;
use crate::signals::Signals;

/// Serves until the client closes its end or a signal comes, ends everything that was started, and returns the
/// exit code: 0 after end of input, 130 after SIGINT, 143 after SIGTERM.
pub(crate) async fn run(config: Config) -> Result<u8, Failure> {
    let (signals, watcher) = Signals::listen()?;
    let core = AgentCore::assemble(config)?;
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
