//! From request to spec.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use dsh_bash::{BashRequest, BashSpec, Limits, StartError};

use crate::played::LIMITS;

fn refusal(request: BashRequest) -> String {
    LIMITS.resolve(request).unwrap_err().to_string()
}

fn vars(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

#[test]
fn c1_c57_defaults_fill_what_a_request_leaves_out() {
    let spec = LIMITS.resolve(BashRequest::new("make")).unwrap();
    let expected = BashSpec {
        command: "make".into(),
        workdir: std::env::current_dir().unwrap(),
        timeout: Duration::from_secs(1),
        deadline: None,
        stdout_max_bytes: 100,
        stderr_max_bytes: 100,
        stdin: None,
        env: BTreeMap::new(),
        dsh_env: BTreeMap::new(),
    };
    assert_eq!(spec, expected);
}

#[test]
fn c56_what_was_asked_for_is_kept() {
    let request = BashRequest {
        workdir: Some("/srv".into()),
        timeout_ms: Some(1500.2),
        stdout_max_bytes: Some(5000.0),
        stdin: Some(String::new()),
        env: vars(&[("A", "1")]),
        dsh_env: vars(&[("DSH_B", "2")]),
        ..BashRequest::new(" make\n")
    };
    let spec = LIMITS.resolve(request).unwrap();
    assert_eq!(
        (spec.command.as_str(), spec.workdir),
        (" make\n", PathBuf::from("/srv"))
    );
    assert_eq!(
        (spec.timeout, spec.deadline),
        (Duration::from_millis(1501), Some(Duration::from_millis(1501)))
    );
    assert_eq!((spec.stdout_max_bytes, spec.stderr_max_bytes), (5000, 100));
    assert_eq!(
        (spec.stdin, spec.env.len(), spec.dsh_env.len()),
        (Some(String::new()), 1, 1)
    );
}

#[test]
fn c49_c194_to_c197_a_foreground_timeout_is_capped_and_a_deadline_is_not() {
    let timeouts = |limits: &Limits, asked| {
        let request = BashRequest {
            timeout_ms: asked,
            ..BashRequest::new("true")
        };
        let spec = limits.resolve(request).unwrap();
        (
            spec.timeout.as_millis(),
            spec.deadline.map(|deadline| deadline.as_millis()),
        )
    };
    assert_eq!(timeouts(&LIMITS, None), (1_000, None));
    assert_eq!(timeouts(&LIMITS, Some(2_000.0)), (2_000, Some(2_000)));
    assert_eq!(timeouts(&LIMITS, Some(3_600_000.0)), (60_000, Some(3_600_000)));
    let capped_default = Limits {
        max_timeout_ms: 10.0,
        ..LIMITS
    };
    assert_eq!(timeouts(&capped_default, None), (10, None));
    let endless = Limits {
        max_timeout_ms: f64::MAX,
        ..LIMITS
    };
    let most = u128::from(u64::MAX);
    assert_eq!(timeouts(&endless, Some(f64::MAX)), (most, Some(most)));
}

#[test]
fn c50_numbers_must_be_positive_and_finite() {
    for wrong in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        let timeout = BashRequest {
            timeout_ms: Some(wrong),
            ..BashRequest::new("true")
        };
        assert_eq!(
            refusal(timeout),
            "played: request.timeout_ms must be a positive finite number"
        );
        let budget = BashRequest {
            stdout_max_bytes: Some(wrong),
            ..BashRequest::new("true")
        };
        assert_eq!(
            refusal(budget),
            "played: request.stdout_max_bytes must be a positive finite number"
        );
    }
}

#[test]
fn c40_c41_each_variable_has_its_channel() {
    for name in ["DSH_SESSION_ID", "dsh_home", "DSH_"] {
        let request = BashRequest {
            env: vars(&[(name, "x")]),
            ..BashRequest::new("true")
        };
        let expected = format!("ordinary bash env cannot set reserved variable \"{name}\"; use dsh_env");
        assert_eq!(refusal(request), expected);
    }
    for name in ["PATH", "DSHX", "É"] {
        let request = BashRequest {
            dsh_env: vars(&[(name, "x")]),
            ..BashRequest::new("true")
        };
        let expected = format!("managed bash env cannot set ordinary variable \"{name}\"; use env");
        assert_eq!(refusal(request), expected);
    }
}

#[test]
fn variables_that_no_environment_can_hold_are_refused() {
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
        let request = BashRequest {
            env: vars(&[(name, value)]),
            ..BashRequest::new("true")
        };
        assert!(refusal(request).starts_with(&format!("variable {name:?} cannot be set: ")));
    }
}

#[test]
fn commands_without_text_or_with_nul_are_refused() {
    for blank in ["", " \n\t"] {
        assert_eq!(
            refusal(BashRequest::new(blank)),
            "command is blank; give the shell something to run"
        );
    }
    assert!(refusal(BashRequest::new("echo \0")).starts_with("command contains a NUL byte"));
}

#[test]
fn a_refusal_does_not_repeat_a_megabyte_of_path() {
    let refusal = StartError::Workdir {
        path: "x".repeat(1 << 20).into(),
        error: "ENAMETOOLONG".into(),
    };
    assert!(refusal.to_string().len() < 5_000);
}

#[test]
fn directories_become_absolute() {
    let workdir = |limits: &Limits, asked: Option<&str>| {
        let request = BashRequest {
            workdir: asked.map(PathBuf::from),
            ..BashRequest::new("true")
        };
        limits
            .resolve(request)
            .map(|spec| spec.workdir)
            .map_err(|error| error.to_string())
    };
    let here = std::env::current_dir().unwrap();
    let configured = Limits {
        cwd: Some("/srv".into()),
        ..LIMITS
    };
    assert_eq!(workdir(&configured, None).unwrap(), PathBuf::from("/srv"));
    assert_eq!(workdir(&configured, Some("/")).unwrap(), PathBuf::from("/"));
    assert_eq!(workdir(&configured, Some("sub")).unwrap(), here.join("sub"));
    assert!(
        workdir(&configured, Some(""))
            .unwrap_err()
            .starts_with("workdir is empty")
    );
}
