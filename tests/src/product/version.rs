//! Which version of a product is driven: some facts differ.

use std::path::Path;
use std::process::Command;

/// A version, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// What the program says.
    pub(super) fn of(program: &Path) -> Version {
        let home = tempfile::tempdir().expect("a directory");
        let output = Command::new(program)
            .arg("--version")
            .env_clear()
            .env("HOME", home.path())
            .output();
        let text = String::from_utf8(output.expect("the product starts").stdout).expect("text");
        Version::parse(&text).unwrap_or_else(|| panic!("no version: {text:?}"))
    }

    /// The first word that is one.
    fn parse(text: &str) -> Option<Version> {
        text.split_whitespace().find_map(|word| {
            let mut numbers = word.split('.').map(str::parse);
            match [numbers.next(), numbers.next(), numbers.next(), numbers.next()] {
                [Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None] => {
                    Some(Version(major, minor, patch))
                }
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_products_say_and_has_an_order() {
        assert_eq!(Version::parse("codex-cli 0.147.0\n"), Some(Version(0, 147, 0)));
        assert_eq!(
            Version::parse("2.1.220 (Claude Code)\n"),
            Some(Version(2, 1, 220))
        );
        assert_eq!(Version::parse("1.2 1.2.3.4 v1.2.3"), None);
        assert!(Version(0, 171, 0) > Version(0, 147, 9));
    }
}
