//! Settings: what is refused, and with which words.

use dsh_subagent::{Capabilities, MAX_DEPTH};
use dsh_tool_subagent::{
    AgentOptions, BackgroundMode, InstallError, MaxDepth, ToolFilterConfig, ToolSubagentConfig, install,
};
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::scripted::Script;

fn read(config: Value) -> Result<ToolSubagentConfig, String> {
    serde_json::from_value(config).map_err(|error| error.to_string())
}

#[test]
fn s34_only_the_provider_has_to_be_named() {
    let config = read(json!({ "provider": "spawn" })).unwrap();
    assert_eq!(config, ToolSubagentConfig::new("spawn"));
    assert_eq!(config.tool_name, "subagent");
    assert!(config.enable_run_in_background);
    assert_eq!(config.background_mode, BackgroundMode::OneShot);
    assert_eq!(
        (&config.agent_options, &config.persona, &config.tool_filter),
        (&None, &None, &None)
    );
    assert_eq!(config.max_depth, MaxDepth::Limit(3));
    config.validate().unwrap();
    assert!(read(json!({})).unwrap_err().contains("provider"));
    assert!(
        read(json!({ "provider": "spawn", "toolName": "x" }))
            .unwrap_err()
            .contains("toolName")
    );
}

#[test]
fn every_key_is_read_and_written_back() {
    let text = json!({
        "provider": "codex",
        "tool_name": "subagent_codex",
        "enable_run_in_background": false,
        "background_mode": "one-shot",
        "agent_options": { "provider": "deepseek", "model": "chat", "max_tokens": 5 },
        "persona": "p",
        "tool_filter": { "deny": ["bash"] },
        "max_depth": "provider-managed",
    });
    let config = read(text.clone()).unwrap();
    config.validate().unwrap();
    assert_eq!(
        config.agent_options,
        Some(AgentOptions {
            provider: Some("deepseek".to_owned()),
            model: Some("chat".to_owned()),
            max_tokens: Some(5),
        })
    );
    assert_eq!(config.max_depth, MaxDepth::ProviderManaged);
    assert_eq!(serde_json::to_value(&config).unwrap(), text);
}

#[test]
fn s49_to_s58_a_limit_of_depth_that_is_none_is_refused() {
    let refused = [
        json!(null),
        json!("3"),
        json!("provider-manage"),
        json!(f64::NAN),
        json!(f64::INFINITY),
        json!(-1),
        json!(1.5),
        json!(-0.0),
        json!(MAX_DEPTH + 1),
        json!([3]),
    ];
    for max_depth in refused {
        let refusal = read(json!({ "provider": "p", "max_depth": max_depth })).unwrap_err();
        assert_eq!(
            refusal, "subagent max_depth must be a non-negative safe integer, or \"provider-managed\"",
            "{max_depth}"
        );
    }
    for max_depth in [0, MAX_DEPTH] {
        let config = read(json!({ "provider": "p", "max_depth": max_depth })).unwrap();
        assert_eq!(config.max_depth, MaxDepth::Limit(max_depth));
    }
    let direct = ToolSubagentConfig {
        max_depth: MaxDepth::Limit(MAX_DEPTH + 1),
        ..ToolSubagentConfig::new("p")
    };
    assert_eq!(
        direct.validate().unwrap_err().problems(),
        ["subagent max_depth must be a non-negative safe integer"]
    );
}

#[test]
fn s61_sl9_all_that_is_wrong_is_said_at_once() {
    let config = ToolSubagentConfig {
        tool_name: " ".to_owned(),
        background_mode: BackgroundMode::Continuable,
        tool_filter: Some(ToolFilterConfig::default()),
        ..ToolSubagentConfig::new("spawn")
    };
    assert_eq!(
        config.validate().unwrap_err().problems(),
        [
            "tool-subagent: tool_name must be a non-empty string",
            "tool-subagent: provider \"spawn\" does not support `background_mode: continuable`",
            "tool-subagent: `tool_filter` is configured but names neither `allow` nor `deny` — remove the key or fill \
             the filter",
        ]
    );
    // A list that is there counts, also when it names nobody.
    let nobody = read(json!({ "provider": "p", "tool_filter": { "allow": [] } })).unwrap();
    nobody.validate().unwrap();
}

#[tokio::test]
async fn settings_that_cannot_be_used_install_nothing() {
    let rig = Rig::new();
    rig.provide("spawn", Script::default());
    let config = ToolSubagentConfig {
        tool_filter: Some(ToolFilterConfig::default()),
        ..ToolSubagentConfig::new("spawn")
    };
    let Err(InstallError::Config(_)) = install(&rig.scope, rig.deps(), config) else {
        panic!("it was installed");
    };
    assert!(rig.tool_names().is_empty());
}

#[tokio::test]
async fn sl11_a_limit_that_the_provider_cannot_hold_fails_the_mount() {
    let rig = Rig::new();
    let incapable = Script {
        capabilities: Capabilities::NONE,
        ..Script::default()
    };
    rig.provide("codex", incapable);
    let config = ToolSubagentConfig::new("codex");
    let Err(error) = install(&rig.scope, rig.deps(), config.clone()) else {
        panic!("it was installed");
    };
    assert_eq!(
        error.to_string(),
        "tool-subagent: provider \"codex\" cannot enforce max_depth (no depthLimit capability) — set max_depth: \
         'provider-managed' to leave the recursion budget to the provider"
    );
    assert!(rig.tool_names().is_empty());
    let managed = ToolSubagentConfig {
        max_depth: MaxDepth::ProviderManaged,
        ..config
    };
    rig.install(managed);
    assert_eq!(rig.tool_names(), ["subagent"]);
}
