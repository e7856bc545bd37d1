use super::*;

#[test]
fn s221_five_modes_and_no_other_and_unknown_keys_are_refused() {
    let parse = |text: &str| serde_json::from_str::<ClaudeCodeConfig>(text);
    let config = parse("{}").expect("all has a default");
    assert_eq!(config, ClaudeCodeConfig::default());
    assert_eq!(
        (
            config.provider_name.as_str(),
            config.permission_mode,
            config.dispose_grace_ms
        ),
        ("claude-code", PermissionMode::DontAsk, 3000.0)
    );
    for mode in ["dontAsk", "acceptEdits", "auto", "plan", "bypassPermissions"] {
        let text = format!(r#"{{"permission_mode": "{mode}"}}"#);
        assert_eq!(parse(&text).expect("a mode").permission_mode.to_string(), mode);
    }
    for other in ["default", "interactive", "DontAsk", "dont_ask"] {
        let text = format!(r#"{{"permission_mode": "{other}"}}"#);
        let error = parse(&text).expect_err(other).to_string();
        assert!(error.contains("unknown variant"), "{error}");
    }
    let error = parse(r#"{"cwd": "/"}"#).expect_err("no such key").to_string();
    assert!(error.contains("unknown field `cwd`"), "{error}");
}

#[test]
fn s218_s223_all_that_is_wrong_is_told_at_once() {
    let config = ClaudeCodeConfig {
        provider_name: String::new(),
        program: Some("claude".into()),
        env: BTreeMap::from([("A=B".to_owned(), Variable::Removed)]),
        dispose_grace_ms: 0.0,
        ..ClaudeCodeConfig::default()
    };
    let wrong = "subagent-claude-code: provider_name must not be empty\n\
         subagent-claude-code: program must be the absolute path of the native claude program, not claude\n\
         subagent-claude-code: env cannot name \"A=B\"; a name is not empty and holds neither \"=\" nor NUL\n\
         subagent-claude-code: dispose_grace_ms must be a positive finite number";
    assert_eq!(config.validate().expect_err("four faults").to_string(), wrong);
    assert_eq!(config.resolve(None).expect_err("the same").to_string(), wrong);
    assert_eq!(
        ClaudeCodeConfig::default()
            .resolve(None)
            .expect_err("no program")
            .to_string(),
        "subagent-claude-code: no program: set program, or the environment variable DSH_CLAUDE_CODE, to the absolute path of \
         the native claude program"
    );
}
