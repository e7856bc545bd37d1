//! Configuration files: whatever stands in one, it is read or refused with a reason, and what was read can be written.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use dsh_agent_core::{Composition, Config, ConfigError, Presets};
use tempfile::TempDir;

use crate::input::Input;

/// The name of the profile and preset.
const NAME: &str = "mine";
/// The most bytes of one reason: a key and what is wrong with it.
const MAX_SAID: usize = 4_100;

thread_local! {
    static HOME: TempDir = home();
}

/// The first byte says whether the rest is a configuration, a profile or a preset.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.byte();
    let text = input.rest();
    HOME.with(|home| match kind % 3 {
        0 => configuration(&home.path().join("config.toml"), text),
        1 => profile(home.path(), text),
        _ => preset(home.path(), text),
    });
}

fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for directory in ["profiles", "presets"] {
        fs::create_dir(home.path().join(directory)).unwrap();
    }
    home
}

fn configuration(path: &Path, text: &[u8]) {
    fs::write(path, text).unwrap();
    let config = match Config::from_file(path) {
        Ok(config) => config,
        Err(error) => return told(&error),
    };
    let written = config.to_toml().expect("what came from a file can be a file");
    fs::write(path, written).unwrap();
    assert_eq!(
        Config::from_file(path).as_ref(),
        Ok(&config),
        "written and read again"
    );
    if let Err(error) = Composition::default().check(&config) {
        said(&error);
    }
}

fn profile(home: &Path, text: &[u8]) {
    fs::write(home.join("profiles/mine.toml"), text).unwrap();
    let composition = match Composition::load(Some(home), Some(NAME), None) {
        Ok(composition) => composition,
        Err(error) => return said(&error),
    };
    for why_no_model in [None, Some("there is no key")] {
        for row in composition.profile.status(why_no_model) {
            said(&row);
        }
    }
    if let Err(error) = composition.check(&Config::default()) {
        said(&error);
    }
}

fn preset(home: &Path, text: &[u8]) {
    let presets = home.join("presets");
    fs::write(presets.join("mine.toml"), text).unwrap();
    let composition = match Composition::load(Some(home), None, Some(NAME)) {
        Ok(composition) => composition,
        Err(error) => return said(&error),
    };
    if let Err(error) = composition.check(&Config::default()) {
        said(&error);
    }
    let presets = Presets::in_directory(Some(presets));
    let mut preset = presets.load(NAME).expect("it was loaded before");
    for row in preset.status(&composition.profile, true) {
        said(&row);
    }
    let copy = presets
        .copy(NAME, "copy")
        .expect("what can be read can be copied");
    let copied = presets.load("copy");
    fs::remove_file(copy).unwrap();
    // A copy has no name and no place of its own.
    (preset.id, preset.name, preset.order) = ("copy".to_owned(), None, None);
    assert_eq!(copied.expect("a copy can be read"), preset);
}

fn told(error: &ConfigError) {
    said(error);
    if let ConfigError::Faults { faults, .. } = error {
        assert!(!faults.is_empty());
        for fault in faults {
            assert!(fault.to_string().len() <= MAX_SAID);
        }
    }
}

fn said(reason: &impl Display) {
    assert!(!reason.to_string().trim().is_empty());
}
