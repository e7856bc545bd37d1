//! The agent products that the integration tests drive: exact versions, native programs, below `target`.
//!
//! npm fetches each archive, and what it says of the archive must be what the pin says. Nothing of the package is run
//! to install it. It is fetched once; a change of its pin fetches it again. A program that the environment names is taken
//! instead, whatever it is.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

const PINS: &str = "tests/clients/products.txt";

/// A product, by the first word of its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    Codex,
    ClaudeCode,
}

/// Which of the versions that the tests know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// What is tested by default.
    Newest,
    /// What must work, too.
    Oldest,
}

/// One line of the pin file.
#[derive(Debug, PartialEq, Eq)]
struct Pin<'text> {
    line: &'text str,
    package: &'text str,
    integrity: &'text str,
    /// Where the archive has the program.
    program: &'text str,
}

impl Product {
    pub(crate) const ALL: [Product; 2] = [Product::Codex, Product::ClaudeCode];

    fn name(self) -> &'static str {
        match self {
            Product::Codex => "codex",
            Product::ClaudeCode => "claude",
        }
    }

    /// Tells the tests where it is.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Product::Codex => "DSH_TEST_CODEX",
            Product::ClaudeCode => "DSH_TEST_CLAUDE",
        }
    }
}

impl Generation {
    fn name(self) -> &'static str {
        match self {
            Generation::Newest => "newest",
            Generation::Oldest => "oldest",
        }
    }
}

/// Fetches every product and prints where each is, as what a test's environment needs; fails when one could not be had.
pub(crate) fn run(workspace: &Workspace, generation: Generation) -> Result<(), Error> {
    let mut result = Ok(());
    for product in Product::ALL {
        match fetched(workspace, product, generation) {
            Ok(program) => println!("{}={}", product.variable(), program.display()),
            Err(error) => {
                eprintln!("{}: {error}", product.name());
                result = result.and(Err(error));
            }
        }
    }
    result
}

/// The program of a product: the one that the environment names, else the newest, fetched if needed.
pub(crate) fn prepare(workspace: &Workspace, product: Product) -> Result<PathBuf, Error> {
    match std::env::var_os(product.variable()) {
        Some(program) => Ok(program.into()),
        None => fetched(workspace, product, Generation::Newest),
    }
}

fn fetched(workspace: &Workspace, product: Product, generation: Generation) -> Result<PathBuf, Error> {
    let file = workspace.root.join(PINS);
    let pins = std::fs::read_to_string(&file).map_err(Error::file(&file))?;
    let pin = Pin::find(&pins, product, generation, &platform())?;
    let products = workspace.target().join("products");
    let directory = products.join(generation.name()).join(product.name());
    let program = directory.join(pin.program);
    let stamp = directory.join("pin.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == pin.line) {
        return Ok(program);
    }
    fetch(&directory, &pin)?;
    let probe = process::output(Command::new(&program).arg("--version").env("HOME", &directory))?;
    eprintln!("{}: {}", program.display(), probe.trim());
    // Last, so that an interrupted fetch is repeated from nothing.
    std::fs::write(&stamp, pin.line).map_err(Error::file(&stamp))?;
    Ok(program)
}

fn fetch(directory: &Path, pin: &Pin<'_>) -> Result<(), Error> {
    if directory.exists() {
        std::fs::remove_dir_all(directory).map_err(Error::file(directory))?;
    }
    std::fs::create_dir_all(directory).map_err(Error::file(directory))?;
    let answer = process::output(
        Command::new("npm")
            .args(["pack", "--json", "--loglevel=error", "--pack-destination"])
            .arg(directory)
            .arg(pin.package)
            .current_dir(directory),
    )?;
    let archive = directory.join(pin.verified(&answer)?);
    process::run(
        Command::new("tar")
            .args(["--strip-components=1", "--no-same-owner", "-xzf"])
            .arg(&archive)
            .arg("-C")
            .arg(directory),
    )?;
    std::fs::remove_file(&archive).map_err(Error::file(&archive))
}

/// As npm names it: `linux-x64`.
fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}-{architecture}", std::env::consts::OS)
}

impl<'text> Pin<'text> {
    fn find(
        pins: &'text str,
        product: Product,
        generation: Generation,
        platform: &str,
    ) -> Result<Pin<'text>, Error> {
        let wanted = [product.name(), generation.name(), platform];
        let pin = pins.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            match fields[..] {
                [name, of, on, package, integrity, program] if [name, of, on] == wanted => Some(Pin {
                    line,
                    package,
                    integrity,
                    program,
                }),
                _ => None,
            }
        });
        pin.ok_or_else(|| Error::Product {
            package: product.name().to_owned(),
            problem: format!("{PINS} has no line for {} on {platform}", generation.name()),
        })
    }

    /// The archive that npm wrote, if it is the pinned one.
    fn verified(&self, answer: &str) -> Result<String, Error> {
        let answer: Value = serde_json::from_str(answer).unwrap_or_default();
        match (answer[0]["integrity"].as_str(), answer[0]["filename"].as_str()) {
            (Some(integrity), Some(archive)) if integrity == self.integrity => Ok(archive.to_owned()),
            (integrity, _) => Err(Error::Product {
                package: self.package.to_owned(),
                problem: format!(
                    "its integrity is {}, not the pinned one",
                    integrity.unwrap_or("unknown")
                ),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PINS: &str = "# a comment\n\
                        codex newest linux-x64 c@2-x64 sha512-a bin/c\n\
                        codex newest linux-arm64 c@2-arm64 sha512-b bin/c\n\
                        codex oldest linux-x64 c@1-x64 sha512-c bin/c\n";

    #[test]
    fn a_pin_is_found_by_product_generation_and_platform() {
        let find = |product, generation, platform| {
            Pin::find(PINS, product, generation, platform).map(|pin| pin.package)
        };
        let found = find(Product::Codex, Generation::Newest, "linux-arm64");
        assert_eq!(found.unwrap(), "c@2-arm64");
        let found = find(Product::Codex, Generation::Oldest, "linux-x64");
        assert_eq!(found.unwrap(), "c@1-x64");
        for (product, generation, platform, named) in [
            (Product::ClaudeCode, Generation::Newest, "linux-arm64", "claude"),
            (
                Product::Codex,
                Generation::Newest,
                "macos-x64",
                "newest on macos-x64",
            ),
            (
                Product::Codex,
                Generation::Oldest,
                "linux-arm64",
                "oldest on linux-arm64",
            ),
        ] {
            let error = find(product, generation, platform).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn another_archive_than_the_pinned_one_is_refused() {
        let pin = Pin::find(PINS, Product::Codex, Generation::Newest, "linux-x64").unwrap();
        let answer = |integrity| format!(r#"[{{"filename": "c.tgz", "integrity": "{integrity}"}}]"#);
        assert_eq!(pin.verified(&answer("sha512-a")).unwrap(), "c.tgz");
        for answer in [
            answer("sha512-b"),
            "[]".to_owned(),
            "npm says something".to_owned(),
        ] {
            let error = pin.verified(&answer).unwrap_err();
            assert!(error.to_string().contains("c@2-x64"), "{error}");
        }
    }
}
