//! `dsh mcp`: the MCP server over this process' stdin and stdout.

use dsh_agent_core::Models;
use dsh_llm::ModelRegistry;

use crate::settings::Settings;
use crate::signals::Signals;
use crate::{Failure, services, streams};

/// Serves until the client closes its end or a signal comes, and ends everything that was started.
pub(crate) async fn run(mut settings: Settings, signals: &Signals) -> Result<u8, Failure> {
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    streams::block(&input)?;
    streams::block(&output)?;
    // The client has a model of its own: another one is asked only where somebody wrote that down.
    settings.composition.profile = settings.composition.profile.as_written();
    let models = match settings.composition.profile.asks_for_model() {
        true => Models::connect(&settings.config.model, |name| std::env::var_os(name))?.registry(),
        false => ModelRegistry::new(),
    };
    let core = services::assemble(settings, models).await?;
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
