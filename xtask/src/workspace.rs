//! Where the workspace is and which packages it has, as Cargo sees them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::process;

/// The workspace this program was built from.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
}

/// One package of the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Directory below the root, with `/` between its parts.
    pub(crate) directory: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// What its default feature switches on.
    pub(crate) default_features: Vec<String>,
    /// The names of its integration test targets.
    pub(crate) tests: Vec<String>,
}

/// One declared dependency of a package.
#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// It is a path in this workspace, not a crate from a registry.
    pub(crate) local: bool,
    /// It is there with a feature only.
    pub(crate) optional: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Dev,
    Build,
}

impl Workspace {
    /// Finds the root through Cargo, so that it works from any directory below it.
    pub(crate) fn find() -> Result<Workspace, Error> {
        let path = process::output(Command::new(cargo()).args([
            "locate-project",
            "--workspace",
            "--message-format",
            "plain",
        ]))?;
        let manifest = PathBuf::from(path.trim());
        let root = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Workspace { root })
    }

    /// A `cargo` command that runs at the root.
    pub(crate) fn cargo<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = Command::new(cargo());
        command.current_dir(&self.root).args(args);
        command
    }

    /// The directory for built and fetched things.
    pub(crate) fn target(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            Some(directory) => self.root.join(directory),
            None => self.root.join("target"),
        }
    }

    /// Every package of the workspace with its declared dependencies.
    pub(crate) fn packages(&self) -> Result<Vec<Package>, Error> {
        let text = process::output(&mut self.cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: Value =
            serde_json::from_str(&text).map_err(|error| Error::Metadata(error.to_string()))?;
        let packages = metadata["packages"]
            .as_array()
            .ok_or_else(|| Error::Metadata("no packages".into()))?;
        packages.iter().map(|package| self.package(package)).collect()
    }

    fn package(&self, value: &Value) -> Result<Package, Error> {
        let manifest = Path::new(text(value, "manifest_path")?);
        let directory = manifest
            .parent()
            .and_then(|directory| directory.strip_prefix(&self.root).ok())
            .ok_or_else(|| Error::Metadata(format!("{} is outside the workspace", manifest.display())))?;
        let dependencies = value["dependencies"].as_array().into_iter().flatten();
        let targets = value["targets"].as_array().into_iter().flatten();
        let is_test = |target: &&Value| target["kind"][0] == "test";
        Ok(Package {
            name: text(value, "name")?.to_owned(),
            directory: directory.to_string_lossy().replace('\\', "/"),
            dependencies: dependencies.map(dependency).collect::<Result<_, _>>()?,
            default_features: strings(&value["features"]["default"]),
            tests: targets
                .filter(is_test)
                .map(|target| text(target, "name").map(str::to_owned))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn dependency(value: &Value) -> Result<Dependency, Error> {
    Ok(Dependency {
        name: text(value, "name")?.to_owned(),
        kind: match value["kind"].as_str() {
            Some("dev") => Kind::Dev,
            Some("build") => Kind::Build,
            _ => Kind::Normal,
        },
        local: value["path"].is_string(),
        optional: value["optional"] == true,
    })
}

fn strings(value: &Value) -> Vec<String> {
    let values = value.as_array().into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text<'value>(value: &'value Value, key: &str) -> Result<&'value str, Error> {
    value[key]
        .as_str()
        .ok_or_else(|| Error::Metadata(format!("no {key}")))
}

/// The Cargo that runs us, so that the pinned toolchain stays in use.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
