//! Where presets are used, and whether they fit there.

use super::preset::{Preset, PresetError, Presets, TOOLS, ToolKind, ToolRow};
use super::profile::Profile;
use crate::config::Config;
use crate::error::Fault;

/// What is the same for every preset: who can be delegated to, and which tools the host has.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    profile: Profile,
    host_tools: Vec<String>,
}

impl Ground {
    pub(crate) fn new(profile: &Profile, config: &Config) -> Self {
        Self {
            profile: profile.clone(),
            host_tools: config.host_tools(),
        }
    }

    /// Reads a preset as it is now, if it fits here.
    ///
    /// # Errors
    ///
    /// As [`Presets::load`], and everything that does not fit.
    pub(crate) fn preset(&self, presets: &Presets, id: &str) -> Result<Preset, PresetError> {
        presets.load_with(id, |preset, tools| self.misfits(preset, tools))
    }

    /// What rows that are switched on cannot have here.
    fn misfits(&self, preset: &Preset, tools: &[String]) -> Vec<Fault> {
        let mut faults = Vec::new();
        for row in preset.rows.iter().filter(|row| !row.disabled) {
            let ToolKind::Subagent(config) = &row.tool else {
                continue;
            };
            let key = format!("{TOOLS}.{}.config", row.id);
            let suits = self.profile.capabilities(&config.provider);
            if let Some(Err(wrong)) = suits.map(|can| config.suits(can)) {
                let problems = wrong.problems().iter();
                faults.extend(problems.map(|problem| Fault::new(&key, problem.clone())));
            }
            faults.extend(self.unknown_tools(tools, row, &key));
        }
        faults
    }

    /// The names in the filter of a row that are no tool's: a child is composed as its parent is.
    fn unknown_tools(&self, own: &[String], row: &ToolRow, key: &str) -> Vec<Fault> {
        let host = self.host_tools.iter().map(String::as_str);
        let mut tools: Vec<&str> = host.collect();
        for name in own.iter().map(String::as_str) {
            if !tools.contains(&name) {
                tools.push(name);
            }
        }
        let unknown = row.tool.filtered().filter(|(_, name)| !tools.contains(name));
        let fault = |(list, name): (&str, &str)| {
            let problem = format!("no tool has the name {name:?} (there is: {})", tools.join(", "));
            Fault::new(&format!("{key}.tool_filter.{list}"), problem)
        };
        unknown.map(fault).collect()
    }
}
