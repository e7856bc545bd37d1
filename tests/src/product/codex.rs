//! What Codex needs to talk to a scripted model.

use super::endpoint::Patience;
use super::{Endpoint, Version, program};
use crate::room::Room;

/// Names its program.
pub(super) const PROGRAM: &str = "DSH_TEST_CODEX";

/// The arguments that make it a server on its standard streams.
pub const APP_SERVER: [&str; 2] = ["app-server", "--stdio"];

/// Its version.
///
/// # Panics
///
/// When `DSH_TEST_CODEX` is not set, or it does not say.
pub fn version() -> Version {
    Version::of(&program(PROGRAM))
}

/// Writes its configuration; returns its variables.
pub(super) fn prepare(room: &Room, endpoint: &Endpoint) -> Vec<(String, String)> {
    let home = room.home().join("codex");
    std::fs::create_dir(&home).expect("a directory in the room");
    std::fs::write(home.join("config.toml"), configuration(endpoint)).expect("the configuration file");
    vec![
        ("CODEX_HOME".into(), home.to_string_lossy().into_owned()),
        ("OPENAI_API_KEY".into(), endpoint.key.clone()),
    ]
}

/// Plugins would be fetched at every start.
fn configuration(endpoint: &Endpoint) -> String {
    let model = endpoint.model.as_ref();
    let model = model.map_or_else(String::new, |model| format!("model = {model:?}\n"));
    let url = endpoint.v1();
    let url = url.as_deref().unwrap_or("https://api.openai.com/v1");
    let retries = match endpoint.patience {
        Patience::None => "request_max_retries = 0\nstream_max_retries = 0\n",
        Patience::Usual => "",
    };
    format!(
        r#"{model}model_provider = "ours"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[model_providers.ours]
name = "Responses"
base_url = "{url}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
requires_openai_auth = false
{retries}
[analytics]
enabled = false

[features]
plugins = false
"#
    )
}

/// One task from the command line, without a sandbox and without questions.
pub(super) fn exec(task: &str) -> [&str; 4] {
    [
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        task,
    ]
}
