//! What Claude Code needs to talk to a scripted model.

use serde_json::{Value, json};

use super::endpoint::Patience;
use super::{Endpoint, Version, program};
use crate::room::Room;

/// Names its program.
pub(super) const PROGRAM: &str = "DSH_TEST_CLAUDE";

/// Has it ask for nothing but what every server has.
pub const PLAIN: &str = "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS";

/// Its version.
///
/// # Panics
///
/// When `DSH_TEST_CLAUDE` is not set, or it does not say.
pub fn version() -> Version {
    Version::of(&program(PROGRAM))
}

/// Writes its settings; returns its variables.
pub(super) fn prepare(room: &Room, endpoint: &Endpoint) -> Vec<(String, String)> {
    let configuration = room.home().join("claude");
    std::fs::create_dir(&configuration).expect("a directory in the room");
    let mut settings = json!({"permissions": {"defaultMode": "default"}});
    if let Some(model) = &endpoint.model {
        settings["model"] = json!(model);
    }
    std::fs::write(configuration.join("settings.json"), settings.to_string()).expect("the settings file");
    let configuration = configuration.to_string_lossy();
    let mut env = vec![
        ("CLAUDE_CONFIG_DIR", &*configuration),
        ("ANTHROPIC_API_KEY", &endpoint.key),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        // It refuses to bypass permissions for root elsewhere; tests may be root.
        ("IS_SANDBOX", "1"),
    ];
    env.extend(endpoint.url.as_deref().map(|url| ("ANTHROPIC_BASE_URL", url)));
    if endpoint.patience == Patience::None {
        // It would ask again, without what is new, when a server refuses it.
        env.push((PLAIN, "1"));
    }
    env.into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The arguments for its line protocol in a permission mode.
pub fn stream_json(permission_mode: &str) -> Vec<&str> {
    let mut args = vec![
        "--output-format",
        "stream-json",
        "--verbose",
        "--input-format",
        "stream-json",
    ];
    args.extend(["--no-session-persistence", "--permission-mode", permission_mode]);
    if permission_mode == "bypassPermissions" {
        args.push("--allow-dangerously-skip-permissions");
    } else {
        args.extend(["--permission-prompt-tool", "stdio"]);
    }
    args.extend(["--disallowedTools", "AskUserQuestion"]);
    args
}

/// The two lines that give it a task; it takes them at once.
pub fn task(task: &str) -> [Value; 2] {
    let initialize = json!({"type": "control_request", "request_id": "initialize", "request": {
        "subtype": "initialize", "systemPrompt": [""], "supportedDialogKinds": ["refusal_fallback_prompt"]
    }});
    let user = json!({"type": "user", "session_id": "", "parent_tool_use_id": null, "message": {
        "role": "user", "content": [{"type": "text", "text": task}]
    }});
    [initialize, user]
}
