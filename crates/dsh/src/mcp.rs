//! `dsh mcp`: the MCP server over this process' stdin and stdout.

use dsh_agent_core::Config;
use dsh_llm::ModelRegistry;

use crate::signals::Signals;
use crate::{Failure, services, streams};

/// Serves until the client closes its end or a signal comes, and ends everything that was started.
pub(crate) async fn run(config: Config, signals: &Signals) -> Result<u8, Failure> {
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    streams::block(&input)?;
    streams::block(&output)?;
    let core = services::assemble(config, ModelRegistry::new())?;
    let work = async {
        let served = dsh_mcp::serve(&core, input, output, signals.stop.clone()).await;
        core.shutdown().await;
        served
    };
    let served = tokio::select! {
        served = work => served,
        never = signals.hurry_when_told(&core) => match never {},
    };
    served?;
    Ok(0)
}
