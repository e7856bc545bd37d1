//! What a composition comes to, row by row.

use std::fmt;

use super::preset::{Preset, ToolKind};
use super::profile::{Given, Profile};

/// One row, and whether it does anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowStatus {
    /// Its id.
    pub id: String,
    /// What it is a row of.
    pub what: String,
    /// `active` and where not, or why it is not.
    pub state: String,
}

const ACTIVE: &str = "active";
const BASE_ACTIVE: &str = "active, but not in dsh mcp: that needs this row in the file of the profile";
const DISABLED: &str = "disabled";

impl Profile {
    /// Every row, in order. `no_model` says why there is no model, where there is none.
    pub fn status(&self, no_model: Option<&str>) -> Vec<RowStatus> {
        let rows = self.rows.iter().map(|row| RowStatus {
            id: row.id.clone(),
            what: format!("provider {}", row.kind.provider_name()),
            state: match (row.disabled, no_model) {
                (true, _) => DISABLED.to_owned(),
                (false, Some(why)) if row.kind.needs_model() => format!("no model: {why}"),
                (false, _) if row.kind.needs_model() && row.given == Given::Base => BASE_ACTIVE.to_owned(),
                (false, _) => ACTIVE.to_owned(),
            },
        });
        rows.collect()
    }

    /// The names of the providers that are there.
    pub(crate) fn mounted(&self, has_model: bool) -> impl Iterator<Item = &str> {
        let rows = self.rows.iter();
        let mounted = rows.filter(move |row| !row.disabled && (has_model || !row.kind.needs_model()));
        mounted.map(|row| row.kind.provider_name())
    }
}

impl Preset {
    /// Every row, in order, under a profile. `has_model` is whether there is a model.
    pub fn status(&self, profile: &Profile, has_model: bool) -> Vec<RowStatus> {
        let rows = self.rows.iter().map(|row| RowStatus {
            id: row.id.clone(),
            what: format!("tool {}", row.tool.tool_name()),
            state: match &row.tool {
                _ if row.disabled => DISABLED.to_owned(),
                ToolKind::Bash => ACTIVE.to_owned(),
                ToolKind::Subagent(config) => {
                    let provider = &config.provider;
                    if profile.mounted(has_model).any(|name| name == provider) {
                        ACTIVE.to_owned()
                    } else {
                        format!("provider {provider} not mounted")
                    }
                }
            },
        });
        rows.collect()
    }
}

/// `tool-bash: tool bash, active`
impl fmt::Display for RowStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, what, state } = self;
        write!(f, "{id}: {what}, {state}")
    }
}
