//! What Codex needs to talk to a scripted model.

use super::{Version, program};
use crate::model::ModelServer;
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
pub(super) fn prepare(room: &Room, model: &ModelServer) -> Vec<(String, String)> {
    let home = room.home().join("codex");
    std::fs::create_dir(&home).expect("a directory in the room");
    std::fs::write(home.join("config.toml"), configuration(&model.url())).expect("the configuration file");
    vec![
        ("CODEX_HOME".into(), home.to_string_lossy().into_owned()),
        ("OPENAI_API_KEY".into(), "scripted-key".into()),
    ]
}

/// One request for each answer, whatever happens to it. Plugins would be fetched at every start.
fn configuration(url: &str) -> String {
    format!(
        r#"model = "scripted-model"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[model_providers.scripted]
name = "Scripted Responses"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0

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
