//! `cargo xtask fuzz`: inputs that nobody thought of.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use clap::Args;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

/// Installed below `target` when the machine has none.
const VERSION: &str = "0.13.2";
/// What the sanitizers are built with.
const TOOLCHAIN: &str = "+nightly";
/// The most bytes of an input: what a check does with one is short then.
const MAX_BYTES: usize = 4096;

/// What is run, and for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only this target.
    target: Option<String>,
}

/// What became of one target.
struct Ran {
    target: String,
    executions: u64,
    /// Edges of the code that were reached by the corpus, and in the end.
    coverage: (u64, u64),
    crash: Option<PathBuf>,
}

/// Runs one target, or each of them, one after another, and tells what came of it.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), Error> {
    let fuzz = Fuzz::ready(workspace)?;
    process::run(fuzz.command("build").args(&options.target))?;
    let targets = match &options.target {
        Some(target) => vec![target.clone()],
        None => fuzz.targets()?,
    };
    let targets = targets.into_iter();
    let rows: Result<Vec<Ran>, Error> = targets.map(|target| fuzz.run(target, options.seconds)).collect();
    let _ = fs::remove_dir_all(fuzz.scratch());
    let rows = rows?;
    print!("{}", table(&rows));
    let crashed: Vec<String> = rows
        .into_iter()
        .filter(|row| row.crash.is_some())
        .map(|row| row.target)
        .collect();
    match crashed.is_empty() {
        true => Ok(()),
        false => Err(Error::Crashed(crashed)),
    }
}

/// A cargo-fuzz that can be run.
struct Fuzz<'workspace> {
    workspace: &'workspace Workspace,
    directory: PathBuf,
    path: Option<OsString>,
}

impl<'workspace> Fuzz<'workspace> {
    /// Uses the installed one, else installs the pinned one below `target`, once.
    fn ready(workspace: &'workspace Workspace) -> Result<Self, Error> {
        let path = process::tool(workspace, "fuzz", VERSION)?;
        Ok(Self {
            workspace,
            directory: workspace.root.join("fuzz"),
            path,
        })
    }

    fn command(&self, subcommand: &str) -> Command {
        // Not the Cargo that runs this: the toolchain is another one.
        let mut command = Command::new("cargo");
        command.current_dir(&self.workspace.root);
        command.args([TOOLCHAIN, "fuzz", subcommand]);
        for pinned in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(pinned);
        }
        // What Cargo tells this program about itself: build scripts look at it, and would run again when somebody repeats
        // a crash from a shell.
        let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
            command.env_remove(name);
        }
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command
    }

    fn targets(&self) -> Result<Vec<String>, Error> {
        let names = process::output(&mut self.command("list"))?;
        Ok(names.split_whitespace().map(str::to_owned).collect())
    }

    /// Files of the checks: in memory, where there is such a place, because they are written all the time.
    fn scratch(&self) -> PathBuf {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            memory.join(format!("fuzz-{}", std::process::id()))
        } else {
            self.workspace.target().join("fuzz")
        }
    }

    fn run(&self, target: String, seconds: u64) -> Result<Ran, Error> {
        // What is found goes to the first corpus, which is nobody's; the second one is that of the repository.
        let found = self.directory.join("target/corpus").join(&target);
        let scratch = self.scratch();
        for directory in [&found, &scratch] {
            fs::create_dir_all(directory).map_err(Error::file(directory))?;
        }
        let mut command = self.command("run");
        command.arg(&target).arg(&found);
        command.arg(self.directory.join("corpus").join(&target));
        command.args(["--", "-fork=0", "-print_final_stats=1"]);
        command.args([
            format!("-max_total_time={seconds}"),
            format!("-max_len={MAX_BYTES}"),
        ]);
        command.env("TMPDIR", scratch).stderr(Stdio::piped());
        eprintln!("{target}: {seconds} s");
        let output = command.output().map_err(|source| Error::Start {
            program: "cargo".to_owned(),
            source,
        })?;
        let text = String::from_utf8_lossy(&output.stderr);
        let crash = if output.status.success() {
            None
        } else {
            eprint!("{text}");
            let broken = crash(&text).ok_or_else(|| Error::Failed {
                command: format!("cargo fuzz run {target}"),
                status: output.status,
            })?;
            Some(broken)
        };
        Ok(Ran {
            executions: executions(&text),
            coverage: coverage(&text),
            crash,
            target,
        })
    }
}

/// The file of the input that broke a promise: the last one, because those that took long are written, too, and are no end.
fn crash(text: &str) -> Option<PathBuf> {
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.split_once("Test unit written to "))?;
    Some(PathBuf::from(line.1.trim()))
}

fn executions(text: &str) -> u64 {
    let said = text
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    said.and_then(|number| number.trim().parse().ok())
        .unwrap_or_default()
}

/// What the corpus reaches, and what was reached in the end.
fn coverage(text: &str) -> (u64, u64) {
    let reached = |line: &str| -> Option<u64> {
        let mut words = line.split_whitespace().skip_while(|word| *word != "cov:");
        words.nth(1)?.parse().ok()
    };
    let mut lines = text.lines().filter(|line| line.starts_with('#'));
    let before = lines
        .clone()
        .find(|line| line.contains("INITED"))
        .and_then(reached);
    let after = lines.rfind(|line| reached(line).is_some()).and_then(reached);
    (before.unwrap_or_default(), after.unwrap_or_default())
}

fn table(rows: &[Ran]) -> String {
    let mut text = format!(
        "{:<10} {:>12} {:>9} {:>9}  crash\n",
        "target", "executions", "coverage", "new"
    );
    for row in rows {
        let (before, after) = row.coverage;
        let crash = match &row.crash {
            Some(input) => format!("cargo {TOOLCHAIN} fuzz run {} {}", row.target, input.display()),
            None => "none".to_owned(),
        };
        let new = after.saturating_sub(before);
        text.push_str(&format!(
            "{:<10} {:>12} {after:>9} {new:>9}  {crash}\n",
            row.target, row.executions
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDED: &str = "#11\tINITED cov: 120 ft: 300 corp: 4/2Kb exec/s: 0 rss: 50Mb\n\
                         #900\tNEW    cov: 125 ft: 310 corp: 5/2Kb\n\
                         #1000\tDONE   cov: 125 ft: 310 corp: 5/2Kb\n\
                         stat::number_of_executed_units: 1000\n";
    const CRASHED: &str = "#2\tINITED cov: 7 ft: 7\n\
                           artifact_prefix='fuzz/artifacts/x/'; Test unit written to fuzz/artifacts/x/slow-unit-1\n\
                           artifact_prefix='fuzz/artifacts/x/'; Test unit written to fuzz/artifacts/x/crash-1\n\
                           stat::number_of_executed_units: 40\n";

    #[test]
    fn figures_and_crashes_are_found_in_what_the_fuzzer_says() {
        assert_eq!(
            (executions(ENDED), coverage(ENDED), crash(ENDED)),
            (1000, (120, 125), None)
        );
        assert_eq!(executions(CRASHED), 40);
        assert_eq!(crash(CRASHED), Some("fuzz/artifacts/x/crash-1".into()));
    }

    #[test]
    fn the_table_says_how_a_crash_is_repeated() {
        let row = Ran {
            target: "lines".to_owned(),
            executions: 40,
            coverage: (7, 9),
            crash: crash(CRASHED),
        };
        assert_eq!(
            table(&[row]),
            "target       executions  coverage       new  crash\n\
             lines                40         9         2  cargo +nightly fuzz run lines fuzz/artifacts/x/crash-1\n"
        );
    }
}
