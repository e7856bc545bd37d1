//! What is wrong with the configuration of a provider.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Variable;

/// The greatest time: a signed number of 32 bits.
const MAX_MS: f64 = 2_147_483_647.0;

/// Everything that is wrong with a configuration; never empty. Each problem is a line, and an item of the `Vec` that it can be
/// made into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.join("\n"))]
pub struct ConfigError {
    problems: Vec<String>,
}

/// Looks at configured values, and keeps what is wrong with them.
#[derive(Debug)]
pub struct Check {
    crate_name: &'static str,
    problems: Vec<String>,
}

/// The program of a product, where it must be native: no wrapper script, and nothing that would have to be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeProgram {
    /// What it is called.
    pub name: &'static str,
    /// The environment variable that names it where no configuration does.
    pub variable: &'static str,
}

impl From<ConfigError> for Vec<String> {
    fn from(error: ConfigError) -> Self {
        error.problems
    }
}

impl Check {
    /// Nothing is wrong yet. The name stands before every problem.
    pub fn new(crate_name: &'static str) -> Self {
        Self {
            crate_name,
            problems: Vec::new(),
        }
    }

    /// Something is wrong that only the provider knows of.
    pub fn problem(&mut self, problem: impl fmt::Display) {
        self.problems.push(format!("{}: {problem}", self.crate_name));
    }

    /// The name that tools delegate to is not empty.
    pub fn provider_name(&mut self, name: &str) {
        if name.is_empty() {
            self.problem("provider_name must not be empty");
        }
    }

    /// A configured program is named by its absolute path: a bare name would be looked up on the `PATH`, and a relative path
    /// below the directory of a task.
    pub fn program(&mut self, native: NativeProgram, configured: Option<&Path>) {
        if let Some(program) = configured {
            self.absolute("program", native, program);
        }
    }

    /// What stands for the name of a variable can be one, and what stands for its value, too.
    pub fn env(&mut self, configured: &BTreeMap<String, Variable>) {
        let not_a_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        for name in configured.keys().filter(not_a_name) {
            self.problem(format_args!(
                "env cannot name {name:?}; a name is not empty and holds neither \"=\" nor NUL"
            ));
        }
        for (name, variable) in configured {
            if matches!(variable, Variable::Value(value) if value.contains('\0')) {
                self.problem(format_args!("env.{name} must not hold NUL"));
            }
        }
    }

    /// What a program is started with can be handed to it.
    pub fn argument(&mut self, key: &str, argument: &str) {
        if argument.contains('\0') {
            self.problem(format_args!("{key} must not hold NUL"));
        }
    }

    /// A time in milliseconds is one that a timer has.
    pub fn milliseconds(&mut self, key: &str, ms: f64) {
        if !(ms.is_finite() && ms > 0.0) {
            self.problem(format_args!("{key} must be a positive finite number"));
        } else if ms > MAX_MS {
            self.problem(format_args!("{key} must be no greater than {MAX_MS}"));
        }
    }

    /// # Errors
    ///
    /// All that was found.
    pub fn finish(self) -> Result<(), ConfigError> {
        if self.problems.is_empty() {
            return Ok(());
        }
        Err(ConfigError {
            problems: self.problems,
        })
    }

    /// The program: the configured one, or the one that the environment variable has for its value.
    ///
    /// # Errors
    ///
    /// All that was found, and that there is no program.
    pub fn resolve(
        mut self,
        native: NativeProgram,
        configured: Option<&Path>,
        variable: Option<OsString>,
    ) -> Result<PathBuf, ConfigError> {
        let variable = variable.filter(|path| !path.is_empty()).map(PathBuf::from);
        let program = match (configured, variable) {
            // Looked at with the rest.
            (Some(program), _) => program.to_owned(),
            (None, Some(program)) => {
                self.absolute(native.variable, native, &program);
                program
            }
            (None, None) => {
                let NativeProgram { name, variable } = native;
                self.problem(format_args!(
                    "no program: set program, or the environment variable {variable}, to the absolute path of the native \
                     {name} program"
                ));
                PathBuf::new()
            }
        };
        self.finish()?;
        Ok(program)
    }

    fn absolute(&mut self, key: &str, native: NativeProgram, program: &Path) {
        if !program.is_absolute() {
            self.problem(format_args!(
                "{key} must be the absolute path of the native {} program, not {}",
                native.name,
                program.display()
            ));
        }
    }
}

/// A time that was [checked](Check::milliseconds), in whole milliseconds: a fraction of one is a whole one.
pub fn milliseconds(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms.ceil() / 1000.0).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests;
