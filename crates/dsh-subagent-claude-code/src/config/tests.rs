use super::*;

fn texts(errors: ConfigErrors) -> Vec<String> {
    errors.0.iter().map(ToString::to_string).collect()
}

#[test]
fn s218_a_grace_is_a_positive_finite_number_of_at_most_31_bits() {
    for grace in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let config = ClaudeCodeConfig {
            dispose_grace_ms: grace,
            ..ClaudeCodeConfig::default()
        };
        assert_eq!(
            texts(config.validate().expect_err("no grace")),
            ["subagent-claude-code: dispose_grace_ms must be a positive finite number"],
            "{grace}"
        );
    }
    let mut config = ClaudeCodeConfig {
        dispose_grace_ms: MAX_GRACE_MS,
        ..ClaudeCodeConfig::default()
    };
    config.validate().expect("the longest");
    config.dispose_grace_ms += 1.0;
    assert_eq!(
        texts(config.validate().expect_err("too long")),
        ["subagent-claude-code: dispose_grace_ms must be no greater than 2147483647"]
    );
    config.dispose_grace_ms = 0.25;
    assert_eq!(
        config.grace(),
        Duration::from_millis(1),
        "a fraction is a whole one"
    );
}

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
fn all_that_is_wrong_is_told_at_once() {
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
}

#[test]
fn s223_the_program_is_configured_or_named_by_the_variable_and_never_searched() {
    let unnamed = ClaudeCodeConfig::default();
    let named = ClaudeCodeConfig {
        program: Some("/opt/claude".into()),
        ..ClaudeCodeConfig::default()
    };
    assert_eq!(named.resolve(Some("/other".into())), Ok("/opt/claude".into()));
    assert_eq!(unnamed.resolve(Some("/other".into())), Ok("/other".into()));
    let refused = |variable: Option<&str>| {
        let errors = unnamed.resolve(variable.map(Into::into)).expect_err("no program");
        errors.to_string()
    };
    let none = "subagent-claude-code: no program: set program, or the environment variable DSH_CLAUDE_CODE, to the absolute \
                path of the native claude program";
    assert_eq!(refused(None), none);
    assert_eq!(refused(Some("")), none);
    assert_eq!(
        refused(Some("claude")),
        "subagent-claude-code: DSH_CLAUDE_CODE must be the absolute path of the native claude program, not claude"
    );
}
