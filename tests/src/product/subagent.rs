//! Products that `dsh` can delegate to: the profile that mounts them, and the preset that shows them.

use std::path::Path;

use super::{Kind, Product};
use crate::room::Room;

/// Chooses the preset that [`mount`] writes.
pub const PRESET: [&str; 2] = ["--preset", "products"];

/// What a product may do without anybody who could be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freedom {
    /// What its mode allows by default: nothing that would need an approval.
    Default,
    /// Everything.
    Bypass,
}

/// Lets `dsh` in this room delegate to these products, each with its own tool, when it is started with [`PRESET`]. Beside
/// the tools there is `bash`.
///
/// # Panics
///
/// When the files cannot be written.
pub fn mount(room: &Room, products: &[(&Product, Freedom)]) {
    let rows = products
        .iter()
        .map(|(product, freedom)| product.provider(*freedom));
    write(
        &room.home().join("profiles/default.toml"),
        &rows.collect::<String>(),
    );
    let rows = products.iter().map(|(product, _)| product.row());
    let bash = "[[tools]]\nid = \"tool-bash\"\nname = \"bash\"\n".to_owned();
    write(
        &room.home().join("presets/products.toml"),
        &(bash + &rows.collect::<String>()),
    );
}

impl Product {
    /// The tool that delegates to it.
    pub fn tool(&self) -> &'static str {
        match self.kind {
            Kind::Codex => "subagent_codex",
            Kind::ClaudeCode => "subagent_claude_code",
        }
    }

    /// The row of a profile that mounts it, with its whole environment.
    fn provider(&self, freedom: Freedom) -> String {
        let name = self.provider_name();
        let mode = match (freedom, self.kind) {
            (Freedom::Default, _) => String::new(),
            (Freedom::Bypass, Kind::Codex) => {
                "permission_mode = \"dangerously-bypass-approvals-and-sandbox\"\n".to_owned()
            }
            (Freedom::Bypass, Kind::ClaudeCode) => "permission_mode = \"bypassPermissions\"\n".to_owned(),
        };
        let program = self.program.display().to_string();
        let env = self
            .env
            .iter()
            .map(|(name, value)| format!("{name} = {value:?}\n"));
        let env: String = env.collect();
        format!(
            "[[providers]]\nid = \"subagent-{name}\"\nname = \"{name}\"\n\
             [providers.config]\nprogram = {program:?}\n{mode}[providers.config.env]\n{env}"
        )
    }

    /// The row of a preset that shows its tool.
    fn row(&self) -> String {
        let (name, tool) = (self.provider_name(), self.tool());
        format!(
            "[[tools]]\nid = \"tool-{name}\"\nname = \"subagent\"\n\
             [tools.config]\nprovider = \"{name}\"\ntool_name = \"{tool}\"\nmax_depth = \"provider-managed\"\n"
        )
    }

    fn provider_name(&self) -> &'static str {
        match self.kind {
            Kind::Codex => "codex",
            Kind::ClaudeCode => "claude-code",
        }
    }
}

fn write(file: &Path, text: &str) {
    let directory = file.parent().expect("a file in the room");
    std::fs::create_dir_all(directory).expect("a directory in the room");
    std::fs::write(file, text).expect("a file in the room");
}
