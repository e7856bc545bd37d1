//! `dsh acp`: an ACP agent over this process' stdin and stdout.

use dsh_acp::ServeError;
use dsh_agent_core::Models;

use crate::cli::ModelFlags;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::{Failure, services, streams};

/// Why no editor is served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AcpError {
    /// Sessions are kept, and there is no place for them.
    #[error("no directory for the sessions: set DSH_HOME")]
    NoHome,
    /// The connection could not be set up.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl AcpError {
    /// The exit code that goes with it.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::NoHome => 2,
            Self::Serve(_) => 1,
        }
    }
}

/// Serves until the editor closes its end or a signal comes, and ends everything that was started.
pub(crate) async fn run(mut settings: Settings, model: ModelFlags, signals: &Signals) -> Result<u8, Failure> {
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    streams::block(&input)?;
    streams::block(&output)?;
    let config = &mut settings.config;
    config.model = config.model.clone().overridden(model.into())?;
    let home = config.tool_bash.dsh_home.as_deref().ok_or(AcpError::NoHome)?;
    let shown = dsh_acp::Settings {
        sessions: home.join("sessions"),
        models: config.model.choices(),
    };
    let models = Models::connect(&config.model, |name| std::env::var_os(name))?;
    let core = services::assemble(settings, models.registry()).await?;
    let work = async {
        let served = dsh_acp::serve(&core, input, output, signals.stop.clone(), shown).await;
        core.shutdown().await;
        served
    };
    let served = tokio::select! {
        served = work => served,
        never = signals.hurry_when_told(&core) => match never {},
    };
    served.map_err(AcpError::from)?;
    Ok(0)
}
