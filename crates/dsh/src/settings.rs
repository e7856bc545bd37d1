//! The configuration: loaded once, and shown on request.

use std::path::PathBuf;

use dsh_agent_core::{Config, ConfigError};
use dsh_llm::ModelRegistry;

use crate::Failure;
use crate::cli::ConfigAction;
use crate::output::say;
use crate::services;

/// The configuration in force.
///
/// # Errors
///
/// Every fault of the file at once.
pub(crate) fn load(explicit: Option<PathBuf>) -> Result<Config, ConfigError> {
    Config::load(explicit.as_deref()).map(|(config, _)| config)
}

/// `dsh config …`
pub(crate) fn print(action: ConfigAction, explicit: Option<PathBuf>) -> Result<u8, Failure> {
    match action {
        ConfigAction::Schema => say(format_args!("{:#}", Config::schema()))?,
        ConfigAction::Show => {
            let (config, source) = Config::load(explicit.as_deref())?;
            let note = "an optional key that is not set is left out: dsh config schema has all";
            say(format_args!("# {source}\n# {note}\n{}", config.to_toml()?))?;
        }
        ConfigAction::Surface => say(surface(load(explicit)?)?.trim_end())?,
    }
    Ok(0)
}

/// What the tools and the prompt of this configuration look like to a model.
fn surface(config: Config) -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let core = services::assemble(config, ModelRegistry::new())?;
        let context = core.context();
        let prompt = context.prompts.assemble()?;
        let surface =
            dsh_tool_tasks::model_surface(&context.tools.definitions(), &prompt, context.tasks.vocabulary());
        core.shutdown().await;
        Ok(surface)
    })
}
