//! What is refused at installation, and the defaults.

use dsh_bash::BashExecutor;
use dsh_bash_local::{InstallError, LocalBash, LocalBashConfig};
use dsh_scope::Scope;

use crate::fixture::Fixture;

#[test]
fn c50_every_wrong_value_is_named_at_once() {
    let config = LocalBashConfig {
        timeout_ms: f64::NAN,
        max_timeout_ms: 0.0,
        max_output_bytes: -1.0,
        max_spill_bytes: 0.0,
        max_total_spill_bytes: 0.0,
        grace_ms: 0.0,
        drain_ms: f64::INFINITY,
        memory_limit_bytes: Some(0.0),
        pids_limit: Some(f64::NAN),
        cgroup: None,
        cwd: Some("".into()),
        allow_env: ["", "A=B", "A\0", "A B", "dsh_home", "FINE_KEY"]
            .map(Into::into)
            .into(),
        deny_env: ["FINE", " A", "A\n", "", "=", "dsh_fine"].map(Into::into).into(),
    };
    let Err(InstallError::Config(errors)) = LocalBash::install(&Scope::root("test"), config) else {
        unreachable!()
    };
    let positive = |key| format!("bash-local: {key} must be a positive finite number");
    let mut expected: Vec<String> = [
        "timeout_ms",
        "max_timeout_ms",
        "max_output_bytes",
        "max_spill_bytes",
        "max_total_spill_bytes",
        "grace_ms",
        "drain_ms",
        "memory_limit_bytes",
        "pids_limit",
    ]
    .map(positive)
    .into();
    expected.push(
        "bash-local: cwd must name a directory; leave it out for the directory the program was started in"
            .into(),
    );
    let no_name = |key, name| {
        format!(
            "bash-local: {key} cannot name {name}; a name is not empty and holds no \"=\", no NUL and no whitespace"
        )
    };
    expected.extend(["\"\"", "\"A=B\"", "\"A\\0\"", "\"A B\""].map(|name| no_name("allow_env", name)));
    expected.extend(["\" A\"", "\"A\\n\"", "\"\"", "\"=\""].map(|name| no_name("deny_env", name)));
    expected.push(
        "bash-local: allow_env cannot name \"dsh_home\"; DSH_ variables are set by the harness alone".into(),
    );
    assert_eq!(errors.to_string(), expected.join("\n"));
}

#[test]
fn a_bound_fits_into_a_signed_number_of_32_bits() {
    let config = |grace_ms, drain_ms| LocalBashConfig {
        grace_ms,
        drain_ms,
        ..LocalBashConfig::default()
    };
    assert_eq!(config(2_147_483_647.0, 2_147_483_647.0).validate(), Ok(()));
    let too_great = |key| format!("bash-local: {key} must be no greater than 2147483647");
    assert_eq!(
        config(2_147_483_648.0, 1e300).validate().unwrap_err().to_string(),
        ["grace_ms", "drain_ms"].map(too_great).join("\n")
    );
}

#[test]
fn unknown_keys_are_refused_and_integers_are_numbers() {
    let parse = serde_json::from_str::<LocalBashConfig>;
    assert_eq!(parse("{}").unwrap(), LocalBashConfig::default());
    assert_eq!(parse(r#"{"timeout_ms": 5000}"#).unwrap().timeout_ms, 5000.0);
    assert!(
        parse(r#"{"timeoutMs": 5000}"#)
            .unwrap_err()
            .to_string()
            .contains("timeoutMs")
    );
}

#[tokio::test]
async fn c46_c49_timeouts_are_defaulted_and_capped() {
    let config = LocalBashConfig {
        timeout_ms: 5000.0,
        max_timeout_ms: 2000.0,
        ..crate::fixture::config()
    };
    let fixture = Fixture::with(config);
    let timeout = |asked| {
        let request = dsh_bash::BashRequest {
            timeout_ms: asked,
            ..fixture.request("true")
        };
        fixture.bash.resolve(request).unwrap().timeout.as_millis()
    };
    assert_eq!(
        (timeout(None), timeout(Some(99_999.0)), timeout(Some(10.0))),
        (2000, 2000, 10)
    );
}

#[tokio::test]
async fn a_closed_scope_installs_nothing() {
    let scope = Scope::root("test");
    scope.close().await.unwrap();
    assert!(matches!(
        LocalBash::install(&scope, LocalBashConfig::default()),
        Err(InstallError::Closed(_))
    ));
}

#[test]
fn limits_that_cannot_be_held_are_refused_with_what_is_missing() {
    for config in [
        LocalBashConfig {
            memory_limit_bytes: Some(1e9),
            ..LocalBashConfig::default()
        },
        LocalBashConfig {
            pids_limit: Some(100.0),
            ..LocalBashConfig::default()
        },
    ] {
        let refused = LocalBash::install(&Scope::root("test"), config);
        let Err(error @ InstallError::Limits(_)) = refused else {
            panic!("process groups hold no limits")
        };
        let said = error.to_string();
        let begins = "bash-local: memory_limit_bytes and pids_limit cannot be held: limits need a cgroup";
        assert!(
            said.starts_with(begins) && said.contains("process groups"),
            "{said}"
        );
    }
}

#[test]
fn the_schema_says_which_numbers_are_refused() {
    let schema = schemars::schema_for!(LocalBashConfig).to_value();
    let keys = schema["properties"]
        .as_object()
        .expect("an object has properties");
    let numbers: Vec<_> = keys.iter().filter(|(_, key)| key["format"] == "double").collect();
    assert_eq!(numbers.len(), 9, "{numbers:?}");
    for (name, key) in numbers {
        assert_eq!(key["exclusiveMinimum"], 0, "{name}");
        let bound = matches!(name.as_str(), "grace_ms" | "drain_ms" | "pids_limit");
        assert_eq!(
            key["maximum"].as_f64(),
            bound.then_some(2_147_483_647.0),
            "{name}"
        );
    }
}
