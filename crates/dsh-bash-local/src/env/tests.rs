use std::time::Duration;

use super::*;

fn spec() -> BashSpec {
    BashSpec {
        command: "true".into(),
        workdir: "/".into(),
        timeout: Duration::from_secs(1),
        deadline: None,
        stdout_max_bytes: 100,
        stderr_max_bytes: 100,
        stdin: None,
        env: BTreeMap::new(),
        dsh_env: BTreeMap::new(),
    }
}

/// The names that reach the command, out of `ambient`.
fn passed(ambient: &[(&str, &str)], allow: &[&str]) -> Vec<String> {
    let config = LocalBashConfig {
        allow_env: allow.iter().map(ToString::to_string).collect(),
        ..LocalBashConfig::default()
    };
    passed_by(ambient, &config)
}

fn passed_by(ambient: &[(&str, &str)], config: &LocalBashConfig) -> Vec<String> {
    let pairs = ambient.iter().map(|(name, value)| (name.into(), value.into()));
    let env = child_env(&scrubbed(pairs, config), &spec());
    let asked: Vec<OsString> = ambient.iter().map(|(name, _)| name.into()).collect();
    env.into_keys()
        .filter(|name| asked.contains(name))
        .map(|name| name.into_string().unwrap())
        .collect()
}

#[test]
fn c38_credential_names_are_removed_in_any_case() {
    let ambient = [
        ("API_KEY", "x"),
        ("my_secret", "x"),
        ("GithubToken", "x"),
        ("DB_PASSWORD", "x"),
        ("MYSQL_PASSWD", "x"),
        ("Aws_Credentials", "x"),
        ("HOME", "/root"),
        ("LANG", "C"),
    ];
    assert_eq!(passed(&ambient, &[]), ["HOME", "LANG"]);
}

#[test]
fn a_denied_name_is_removed_even_if_it_is_allowed() {
    let config = LocalBashConfig {
        allow_env: vec!["API_KEY".into(), "OTHER_KEY".into()],
        deny_env: vec!["API_KEY".into(), "HARMLESS".into()],
        ..LocalBashConfig::default()
    };
    let ambient = ["API_KEY", "OTHER_KEY", "HARMLESS", "HARMLESS_TOO"].map(|name| (name, "x"));
    assert_eq!(passed_by(&ambient, &config), ["HARMLESS_TOO", "OTHER_KEY"]);
}

#[test]
fn c38_managed_names_never_come_from_outside() {
    assert_eq!(
        passed(
            &[("DSH_SESSION_ID", "stale"), ("dsh_home", "x"), ("DSHX", "y")],
            &[]
        ),
        ["DSHX"]
    );
    assert_eq!(
        passed(&[("DSH_SESSION_ID", "stale")], &["DSH_SESSION_ID"]),
        [""; 0]
    );
}

#[test]
fn what_looks_like_a_credential_by_its_value_is_removed_and_the_rest_stays() {
    let ambient = [
        ("DATABASE_URL", "postgres://u:p@h"),
        ("CONNECTION", "host=db password=p"),
        ("DB_HOST", "postgres://h/app"),
        ("BASH_FUNC_login%%", "() { curl --data password=x; }"),
        ("PWD", "/srv"),
        ("SSH_AUTH_SOCK", "/run/agent"),
    ];
    assert_eq!(
        passed(&ambient, &[]),
        ["BASH_FUNC_login%%", "DB_HOST", "PWD", "SSH_AUTH_SOCK"]
    );
}

#[test]
fn the_allow_list_brings_back_exactly_what_it_names() {
    let ambient = [
        ("KEY_REPEAT", "off"),
        ("OTHER_KEY", "x"),
        ("DATABASE_URL", "a://u:p@h"),
        ("BASH_ENV", "f"),
    ];
    assert_eq!(
        passed(&ambient, &["KEY_REPEAT", "DATABASE_URL", "BASH_ENV"]),
        ["BASH_ENV", "DATABASE_URL", "KEY_REPEAT"]
    );
}

#[test]
fn start_up_files_and_options_are_removed_and_functions_stay() {
    let ambient = [
        ("BASH_ENV", "f"),
        ("SHELLOPTS", "xtrace"),
        ("BASHOPTS", "x"),
        ("BASH_FUNC_module%%", "() { :; }"),
    ];
    assert_eq!(passed(&ambient, &[]), ["BASH_FUNC_module%%"]);
}

#[test]
fn c22_own_variables_win_over_overrides_and_scrub() {
    let own = [("TERM", "xterm"), ("SERVICE_TOKEN", "given")];
    let spec = BashSpec {
        env: own
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
        ..spec()
    };
    let ambient = [("SERVICE_TOKEN", "ambient"), ("TERM", "vt100"), ("NO_COLOR", "0")];
    let pairs = ambient.iter().map(|(n, v)| (n.into(), v.into()));
    let env = child_env(&scrubbed(pairs, &LocalBashConfig::default()), &spec);
    assert_eq!(env[OsStr::new("TERM")], "xterm");
    assert_eq!(env[OsStr::new("SERVICE_TOKEN")], "given");
    assert_eq!(env[OsStr::new("NO_COLOR")], "1");
    assert_eq!(env[OsStr::new("GIT_TERMINAL_PROMPT")], "0");
}

#[test]
fn names_that_are_no_text_pass_unchanged() {
    use std::os::unix::ffi::OsStringExt;
    let name = OsString::from_vec(vec![b'A', 0xff]);
    let ambient = [(name.clone(), OsString::from_vec(vec![0xfe]))];
    let env = child_env(&scrubbed(ambient, &LocalBashConfig::default()), &spec());
    assert_eq!(env[&name], OsString::from_vec(vec![0xfe]));
}

#[test]
fn a_name_that_cannot_be_passed_on_does_not_fail_the_command() {
    assert_eq!(passed(&[("=C:", "x"), ("LANG", "C")], &["=C:"]), ["LANG"]);
}
