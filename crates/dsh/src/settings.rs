//! The configuration and the composition: loaded once, and shown on request.

use std::path::PathBuf;

use dsh_agent_core::{Composition, Config, Models, Preset, Presets, Profile, Source};
use dsh_llm::ModelRegistry;

use crate::Failure;
use crate::cli::{CompositionFlags, ConfigAction, PresetAction};
use crate::output::say;
use crate::services;

/// What the services are made of.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) composition: Composition,
    /// The preset that the command line names: a session of another one cannot be gone on with.
    pub(crate) named_preset: Option<String>,
}

/// What is in force.
///
/// # Errors
///
/// Every fault of the configuration file, the profile and the preset.
pub(crate) fn load(explicit: Option<PathBuf>, flags: &CompositionFlags) -> Result<Settings, Failure> {
    let (config, _, composition) = composed(explicit, flags)?;
    Ok(Settings {
        config,
        composition,
        named_preset: flags.preset.clone(),
    })
}

fn composed(
    explicit: Option<PathBuf>,
    flags: &CompositionFlags,
) -> Result<(Config, Source, Composition), Failure> {
    let (profile, preset) = (flags.profile.as_deref(), flags.preset.as_deref());
    Ok(Composition::configured(explicit.as_deref(), profile, preset)?)
}

/// `dsh config …`
pub(crate) fn print(
    action: ConfigAction,
    explicit: Option<PathBuf>,
    flags: &CompositionFlags,
) -> Result<u8, Failure> {
    match action {
        ConfigAction::Schema => say(format_args!("{:#}", Config::schema()))?,
        ConfigAction::Show => show(explicit, flags)?,
        ConfigAction::Surface => say(surface(load(explicit, flags)?)?.trim_end())?,
        ConfigAction::Preset { action } => {
            let presets = load(explicit, flags)?.composition.presets;
            match action {
                PresetAction::List => list(&presets)?,
                PresetAction::Copy { from, to } => say(presets.copy(&from, &to)?.display())?,
            }
        }
    }
    Ok(0)
}

/// The configuration as a file that would set it, and what the composition comes to.
fn show(explicit: Option<PathBuf>, flags: &CompositionFlags) -> Result<(), Failure> {
    let (config, source, composition) = composed(explicit, flags)?;
    let Composition {
        profile,
        presets,
        preset,
    } = composition;
    let no_model = Models::connect(&config.model, |name| std::env::var_os(name))
        .err()
        .map(|error| error.to_string());
    let preset = presets.load(&preset)?;
    let other = "--model, --base-url and --api-key-env of a command are not in it";
    let note = "an optional key that is not set is left out: dsh config schema has all";
    say(format_args!(
        "# {source}\n# {note}\n# {other}\n{}",
        config.to_toml()?
    ))?;
    say(format_args!(
        "# profile {}",
        flags.profile.as_deref().unwrap_or(Profile::DEFAULT)
    ))?;
    for row in profile.status(no_model.as_deref()) {
        say(format_args!("#   {row}"))?;
    }
    say(format_args!("# preset {}", preset.id))?;
    for row in preset.status(&profile, no_model.is_none()) {
        say(format_args!("#   {row}"))?;
    }
    Ok(())
}

fn list(presets: &Presets) -> Result<(), Failure> {
    for id in presets.ids() {
        match presets.load(&id) {
            Ok(Preset { description, .. }) => say(format_args!("{id}: {description}"))?,
            Err(error) => say(format_args!("{id}: {error}"))?,
        }
    }
    Ok(())
}

/// What the tools and the prompt of this configuration look like to a model.
fn surface(settings: Settings) -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let core = services::assemble(settings, ModelRegistry::new()).await?;
        let context = core.context();
        let prompt = context.prompts.assemble()?;
        let surface =
            dsh_tool_tasks::model_surface(&context.tools.definitions(), &prompt, context.tasks.vocabulary());
        core.shutdown().await;
        Ok(surface)
    })
}
