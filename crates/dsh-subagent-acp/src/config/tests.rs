use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn parse(text: &str) -> Result<AcpConfig, serde_json::Error> {
    serde_json::from_str(text)
}

#[test]
fn acp_all_but_the_command_has_a_default_and_unknown_keys_are_refused() {
    let config = parse(r#"{"command": "gemini"}"#).expect("enough");
    assert_eq!(config, AcpConfig::new("gemini"));
    assert_eq!(
        (config.provider_name.as_str(), config.permission),
        ("acp", Permission::Reject)
    );
    assert_eq!(
        (config.dispose_eof_grace_ms, config.dispose_grace_ms),
        (6000.0, 3000.0)
    );
    let error = parse("{}").expect_err("no command").to_string();
    assert!(error.contains("missing field `command`"), "{error}");
    let error = parse(r#"{"command": "a", "program": "b"}"#)
        .expect_err("no such key")
        .to_string();
    assert!(error.contains("unknown field `program`"), "{error}");
    let error = parse(r#"{"command": "a", "permission": "ask"}"#)
        .expect_err("nobody to ask")
        .to_string();
    assert!(error.contains("unknown variant"), "{error}");
}

#[test]
fn acp_both_graces_are_checked() {
    let config = AcpConfig {
        dispose_eof_grace_ms: 0.0,
        dispose_grace_ms: f64::INFINITY,
        ..AcpConfig::new("a")
    };
    assert_eq!(
        config.validate().expect_err("no grace").to_string(),
        "subagent-acp: dispose_eof_grace_ms must be a positive finite number\n\
         subagent-acp: dispose_grace_ms must be a positive finite number"
    );
}

#[test]
fn acp_all_that_is_wrong_is_told_at_once() {
    let config = AcpConfig {
        provider_name: String::new(),
        cwd: Some(PathBuf::new()),
        args: vec!["--good".to_owned(), "\0".to_owned()],
        env: BTreeMap::from([("A=B".to_owned(), Variable::Removed)]),
        ..AcpConfig::new("bin/agent")
    };
    assert_eq!(
        config.validate().expect_err("five faults").to_string(),
        "subagent-acp: provider_name must not be empty\n\
         subagent-acp: command must be an absolute path or a bare name, not bin/agent\n\
         subagent-acp: cwd must not be empty\n\
         subagent-acp: args[1] must not hold NUL\n\
         subagent-acp: env cannot name \"A=B\"; a name is not empty and holds neither \"=\" nor NUL"
    );
    let error = AcpConfig::new("").validate().expect_err("no command");
    assert_eq!(error.to_string(), "subagent-acp: command must not be empty");
}

#[test]
fn acp_a_configured_directory_is_made_absolute_and_must_be_one_that_can_be_entered() {
    let within = |cwd: &Path| AcpConfig {
        cwd: Some(cwd.to_owned()),
        ..AcpConfig::new("a")
    };
    let refused = |cwd: &Path| within(cwd).resolve().expect_err("no directory").to_string();
    let room = tempfile::tempdir().expect("a room");
    assert_eq!(within(room.path()).resolve(), Ok(Some(room.path().to_owned())));
    let here = std::env::current_dir().expect("a directory");
    assert_eq!(within(Path::new("src")).resolve(), Ok(Some(here.join("src"))));
    let inaccessible = |cwd: &Path| {
        format!(
            "subagent-acp: cwd is not an accessible directory: {}",
            cwd.display()
        )
    };
    let missing = room.path().join("missing");
    assert_eq!(refused(&missing), inaccessible(&missing));
    let file = room.path().join("file");
    std::fs::write(&file, "").expect("a file");
    assert_eq!(refused(&file), inaccessible(&file));
    let locked = room.path().join("locked");
    std::fs::create_dir(&locked).expect("a directory");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    // Nothing is locked for root.
    if std::fs::metadata(locked.join(".")).is_err() {
        assert_eq!(refused(&locked), inaccessible(&locked));
    }
}
