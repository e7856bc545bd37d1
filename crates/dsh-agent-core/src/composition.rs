//! Who can be delegated to, and what each agent sees.
//!
//! A [`Profile`] mounts providers on the host: named ways to run a child. A [`Preset`] gives an agent its tools. A tool that
//! delegates is there exactly where both hold: the row of the preset is switched on, and its provider is mounted. Nothing is
//! started by composing.
//!
//! ```toml
//! # $DSH_HOME/profiles/default.toml
//! [[providers]]
//! id = "subagent-codex"
//! name = "codex"                  # or "claude-code", "acp", "spawn", "fork"
//! config = { provider_name = "codex", permission_mode = "never" }
//! ```
//!
//! ```toml
//! # $DSH_HOME/presets/mine.toml
//! [[tools]]
//! id = "tool-bash"
//! name = "bash"                   # or "subagent"
//!
//! [[tools]]
//! id = "tool-subagent-codex"
//! name = "subagent"
//! config = { provider = "codex", tool_name = "subagent_codex", max_depth = "provider-managed" }
//! ```
//!
//! The tools that read, list and kill tasks are the host's: every agent has them unless `tool_tasks.enabled` is off.

mod composer;
mod factory;
mod ground;
mod preset;
mod profile;
mod provider;
mod rows;
mod status;

use std::path::Path;

use preset::ToolKind;
pub use preset::{Preset, PresetError, Presets};
pub use profile::{Profile, ProfileError};
pub use status::RowStatus;

pub(crate) use composer::{Composer, Control, Role};
pub(crate) use factory::Children;
pub(crate) use ground::Ground;
pub(crate) use provider::{Means, MountError};

use crate::config::{Config, Source};
use crate::error::ConfigError;

/// Who can be delegated to, and which preset agents have unless another one is theirs.
#[derive(Debug, Clone)]
pub struct Composition {
    /// Who can be delegated to.
    pub profile: Profile,
    /// What agents can be composed from.
    pub presets: Presets,
    /// The preset of agents whose session names none.
    pub preset: String,
}

/// Why there is no composition: everything that is wrong with its two files, or does not fit together.
#[derive(Debug, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct CompositionError(pub Vec<CompositionFault>);

/// What is wrong with one part of a composition.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum CompositionFault {
    /// The profile.
    Profile(#[from] ProfileError),
    /// The preset.
    Preset(#[from] PresetError),
    /// What the configuration says of it.
    Configuration(#[from] ConfigError),
}

impl Composition {
    /// Reads the configuration, as [`Config::load`] does, and a profile and a preset of its home directory; without names, the
    /// default ones.
    ///
    /// # Errors
    ///
    /// A [`CompositionError`] with all faults of the three, and with everything that does not [fit together](Self::check).
    pub fn configured(
        explicit: Option<&Path>,
        profile: Option<&str>,
        preset: Option<&str>,
    ) -> Result<(Config, Source, Self), CompositionError> {
        let config = Config::load(explicit);
        let (home, known) = match &config {
            Ok((config, _)) => (config.tool_bash.dsh_home.clone(), Some(config)),
            Err(_) => (Config::default_home(), None),
        };
        let composition = Self::read(home.as_deref(), known, profile, preset);
        match (config, composition) {
            (Ok((config, source)), Ok(composition)) => {
                composition.check(&config)?;
                Ok((config, source, composition))
            }
            (config, composition) => {
                let mut all: Vec<_> = config
                    .err()
                    .map(CompositionFault::Configuration)
                    .into_iter()
                    .collect();
                all.extend(composition.err().into_iter().flatten());
                Err(CompositionError(all))
            }
        }
    }

    /// Reads a profile and a preset of the home directory; without names, the default ones.
    ///
    /// # Errors
    ///
    /// A [`CompositionError`] with all faults of both.
    pub fn load(
        home: Option<&Path>,
        profile: Option<&str>,
        preset: Option<&str>,
    ) -> Result<Self, CompositionError> {
        Self::read(home, None, profile, preset).map_err(CompositionError)
    }

    /// What does not fit is told as far as what it has to fit could be read.
    fn read(
        home: Option<&Path>,
        config: Option<&Config>,
        profile: Option<&str>,
        preset: Option<&str>,
    ) -> Result<Self, Vec<CompositionFault>> {
        let directory = |name| home.map(|home| home.join(name));
        let presets = Presets::in_directory(directory("presets"));
        let id = preset.unwrap_or(Presets::DEFAULT);
        let profile = Profile::load(
            directory("profiles").as_deref(),
            profile.unwrap_or(Profile::DEFAULT),
        );
        let preset = match config {
            Some(config) => {
                let nobody = Profile { rows: Vec::new() };
                Ground::new(profile.as_ref().unwrap_or(&nobody), config).preset(&presets, id)
            }
            None => presets.load(id),
        };
        match (profile, preset) {
            (Ok(profile), Ok(preset)) => Ok(Self {
                profile,
                presets,
                preset: preset.id,
            }),
            (profile, preset) => Err(faults([
                profile.err().map(CompositionFault::Profile),
                preset.err().map(CompositionFault::Preset),
            ])),
        }
    }

    /// Whether its parts fit together, and a configuration fits them: the profile's providers can do what the preset asks of
    /// them, and tools that are named are tools that an agent can have.
    ///
    /// # Errors
    ///
    /// Everything that does not fit.
    pub fn check(&self, config: &Config) -> Result<(), CompositionError> {
        let preset = Ground::new(&self.profile, config).preset(&self.presets, &self.preset);
        let unknown = config.unknown_tools(self.presets.tool_names(&self.preset));
        let configuration = (!unknown.is_empty()).then(|| ConfigError::Faults {
            origin: "configuration".to_owned(),
            faults: unknown,
        });
        let faults = faults([
            preset.err().map(CompositionFault::Preset),
            configuration.map(CompositionFault::Configuration),
        ]);
        if faults.is_empty() {
            return Ok(());
        }
        Err(CompositionError(faults))
    }

    /// Logs the rows of the preset that are switched on and delegate to nobody that the profile has. No fault: another profile
    /// may have that one.
    pub(crate) fn warn(&self) {
        let known: Vec<&str> = self
            .profile
            .rows
            .iter()
            .map(|row| row.kind.provider_name())
            .collect();
        let preset = self.presets.load(&self.preset).into_iter();
        for row in preset.flat_map(|preset| preset.rows).filter(|row| !row.disabled) {
            if let ToolKind::Subagent(config) = &row.tool
                && !known.contains(&&*config.provider)
            {
                tracing::warn!(
                    "preset {}: row {}: the profile has no provider {:?} (it has: {})",
                    self.preset,
                    row.id,
                    config.provider,
                    known.join(", ")
                );
            }
        }
    }
}

impl Default for Composition {
    /// What every installation has, without a home directory.
    fn default() -> Self {
        Self {
            profile: Profile::base(),
            presets: Presets::default(),
            preset: Presets::DEFAULT.to_owned(),
        }
    }
}

fn faults(parts: [Option<CompositionFault>; 2]) -> Vec<CompositionFault> {
    parts.into_iter().flatten().collect()
}

fn lines(faults: &[CompositionFault]) -> String {
    let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
