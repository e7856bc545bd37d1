use super::*;

const NATIVE: NativeProgram = NativeProgram {
    name: "robot",
    variable: "DSH_ROBOT",
};

fn problems(look: impl FnOnce(&mut Check)) -> String {
    let mut check = Check::new("subagent-robot");
    look(&mut check);
    check
        .finish()
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

#[test]
fn s153_s218_a_time_is_a_positive_finite_number_of_at_most_31_bits() {
    for ms in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            problems(|check| check.milliseconds("dispose_grace_ms", ms)),
            "subagent-robot: dispose_grace_ms must be a positive finite number",
            "{ms}"
        );
    }
    assert_eq!(
        problems(|check| check.milliseconds("dispose_grace_ms", MAX_MS)),
        ""
    );
    assert_eq!(
        problems(|check| check.milliseconds("dispose_grace_ms", MAX_MS + 1.0)),
        "subagent-robot: dispose_grace_ms must be no greater than 2147483647"
    );
}

#[test]
fn s192_a_fraction_of_a_millisecond_is_a_whole_one() {
    assert_eq!(milliseconds(0.25), Duration::from_millis(1));
    assert_eq!(milliseconds(3000.0), Duration::from_secs(3));
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let told = problems(|check| {
        check.provider_name("");
        check.program(NATIVE, Some(Path::new("robot")));
        check.env(&BTreeMap::from([
            ("A=B".to_owned(), Variable::Removed),
            // The value may be a secret.
            ("KEY".to_owned(), "SECRET\0TOKEN".into()),
        ]));
        check.argument("args[0]", "a\0b");
        check.problem("it is no robot");
    });
    assert_eq!(
        told,
        "subagent-robot: provider_name must not be empty\n\
         subagent-robot: program must be the absolute path of the native robot program, not robot\n\
         subagent-robot: env cannot name \"A=B\"; a name is not empty and holds neither \"=\" nor NUL\n\
         subagent-robot: env.KEY must not hold NUL\n\
         subagent-robot: args[0] must not hold NUL\n\
         subagent-robot: it is no robot"
    );
}

#[test]
fn s209_s223_a_program_is_configured_or_named_by_the_variable_and_never_searched() {
    let resolve = |configured: Option<&str>, variable: Option<&str>| {
        let mut check = Check::new("subagent-robot");
        let configured = configured.map(Path::new);
        check.program(NATIVE, configured);
        let program = check.resolve(NATIVE, configured, variable.map(Into::into));
        program.map_err(|error| error.to_string())
    };
    assert_eq!(
        resolve(Some("/opt/robot"), Some("/other")),
        Ok("/opt/robot".into())
    );
    assert_eq!(resolve(None, Some("/other")), Ok("/other".into()));
    let none = "subagent-robot: no program: set program, or the environment variable DSH_ROBOT, to the absolute path of the \
                native robot program";
    assert_eq!(resolve(None, None), Err(none.to_owned()));
    assert_eq!(resolve(None, Some("")), Err(none.to_owned()));
    let relative = |key| {
        format!("subagent-robot: {key} must be the absolute path of the native robot program, not robot")
    };
    assert_eq!(resolve(None, Some("robot")), Err(relative("DSH_ROBOT")));
    assert_eq!(resolve(Some("robot"), Some("/other")), Err(relative("program")));
}
