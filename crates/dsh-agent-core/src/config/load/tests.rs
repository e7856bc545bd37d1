use std::collections::HashMap;

use super::*;

fn located(explicit: Option<&str>, variables: &[(&str, &Path)]) -> Source {
    let variables: HashMap<_, _> = variables.iter().copied().collect();
    locate(explicit.map(Path::new), |name| {
        variables.get(name).map(|path| path.as_os_str().to_owned())
    })
}

#[test]
fn a_named_file_wins_then_the_variable_then_home_then_the_defaults() {
    let home = tempfile::tempdir().unwrap();
    let user = tempfile::tempdir().unwrap();
    let all = [
        ("DSH_CONFIG", Path::new("/c.toml")),
        ("DSH_HOME", home.path()),
        ("HOME", user.path()),
    ];
    assert_eq!(located(Some("/x.toml"), &all), Source::Named("/x.toml".into()));
    assert_eq!(located(None, &all), Source::Variable("/c.toml".into()));
    assert_eq!(
        located(None, &all[1..]),
        Source::Defaults,
        "there is no file in the home directory yet"
    );

    let file = home.path().join("config.toml");
    fs::write(&file, "").unwrap();
    assert_eq!(located(None, &all[1..]), Source::Home(file));
    assert_eq!(located(None, &all[2..]), Source::Defaults);

    let file = user.path().join(".dsh/config.toml");
    fs::create_dir(user.path().join(".dsh")).unwrap();
    fs::write(&file, "").unwrap();
    assert_eq!(located(None, &all[2..]), Source::Home(file));
}

#[test]
fn an_empty_variable_is_an_unset_one() {
    assert_eq!(
        located(
            None,
            &[("DSH_CONFIG", Path::new("")), ("DSH_HOME", Path::new(""))]
        ),
        Source::Defaults
    );
}
