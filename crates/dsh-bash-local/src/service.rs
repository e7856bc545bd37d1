//! The executor.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_bash::{BashExecutor, BashProcess, BashRequest, BashSpec, ResolveError, StartError};
use dsh_output::{OutputConfig, OutputLog, SpillConfig, SpillDir};
use dsh_scope::{Scope, ScopeClosed};
use dsh_subprocess::{Launcher, ProcessSpec, Stdin};
use tokio_util::sync::CancellationToken;

use crate::config::{LocalBashConfig, saturating};
use crate::directories::Directories;
use crate::driver::{Bounds, drive};
use crate::env::{child_env, scrubbed};
use crate::error::InstallError;
use crate::process::LocalProcess;
use crate::{NAME, check};

/// Runs commands with the bash of this machine. Cheap to clone; all clones are one executor.
#[derive(Clone)]
pub struct LocalBash {
    core: Arc<Core>,
}

struct Core {
    /// Where the processes are driven.
    processes: Scope,
    /// Ends them. Not the token of a scope, which is cancelled when the closing of the outermost one begins: whoever
    /// was installed later has its turn before, and knows better why a process ends.
    stop: CancellationToken,
    config: LocalBashConfig,
    launcher: Launcher,
    directories: Directories,
    /// The ambient environment after the scrub.
    ambient: Vec<(OsString, OsString)>,
    spill: Option<Arc<SpillDir>>,
    hurry: CancellationToken,
}

impl LocalBash {
    /// Installs an executor that lives as long as `scope`; commands start from the program's environment as it is now,
    /// each in a process group.
    ///
    /// # Errors
    ///
    /// [`InstallError`] when the configuration is wrong, limits cannot be held (they never can in process groups), or the
    /// scope is closing.
    pub fn install(scope: &Scope, config: LocalBashConfig) -> Result<Self, InstallError> {
        Self::with_launcher(scope, config, Launcher::groups())
    }

    /// As [`install`](Self::install), with another way to start commands.
    ///
    /// # Errors
    ///
    /// As [`install`](Self::install).
    pub fn with_launcher(
        scope: &Scope,
        config: LocalBashConfig,
        launcher: Launcher,
    ) -> Result<Self, InstallError> {
        Self::build(scope, config, launcher, std::env::vars_os().collect())
    }

    /// As [`install`](Self::install), with another environment to start from.
    ///
    /// # Errors
    ///
    /// As [`install`](Self::install).
    pub fn with_ambient(
        scope: &Scope,
        config: LocalBashConfig,
        ambient: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, InstallError> {
        Self::build(scope, config, Launcher::groups(), ambient.into_iter().collect())
    }

    fn build(
        scope: &Scope,
        config: LocalBashConfig,
        launcher: Launcher,
        ambient: Vec<(OsString, OsString)>,
    ) -> Result<Self, InstallError> {
        config.validate()?;
        let ambient = scrubbed(ambient, &config);
        launcher.check_limits(&config.tree_limits())?;
        // A scope of its own: closing it takes the drivers along, and nothing else.
        let own = scope.child(NAME)?;
        let processes = own.child("bash processes")?;
        let stop = CancellationToken::new();
        let stopped = stop.clone().drop_guard();
        // Registered last, so disposed of first; dropped when the scope is dropped unclosed.
        own.effect("stop bash processes", move || async move { drop(stopped) })
            .map_err(ScopeClosed::discard)?;
        let room = saturating(config.max_total_spill_bytes) as u64;
        let spill = SpillDir::create_in(&spill_parent(std::env::temp_dir()), room)
            .inspect_err(|error| tracing::warn!(%error, "long output is kept in memory only"))
            .ok();
        let path = ambient.iter().find(|(name, _)| name == "PATH");
        let directories = Directories::new(launcher.clone(), path.map(|(_, path)| path.as_os_str()));
        Ok(Self {
            core: Arc::new(Core {
                processes,
                stop,
                config,
                launcher,
                directories,
                ambient,
                spill,
                hurry: CancellationToken::new(),
            }),
        })
    }

    fn log(&self, spec: &BashSpec) -> OutputLog {
        let core = &self.core;
        OutputLog::new(OutputConfig {
            memory_bytes: spec.stdout_max_bytes.saturating_add(spec.stderr_max_bytes),
            spill: core.spill.as_ref().map(|dir| SpillConfig {
                dir: Arc::clone(dir),
                max_bytes: saturating(core.config.max_spill_bytes) as u64,
            }),
        })
    }

    fn process_spec(&self, spec: &BashSpec) -> ProcessSpec {
        let core = &self.core;
        let env = child_env(&core.ambient, spec);
        ProcessSpec {
            bash_command: Some((&spec.command).into()),
            env: env.into_iter().collect(),
            stdin: match &spec.stdin {
                Some(text) => Stdin::Data(text.clone().into_bytes()),
                None => Stdin::Null,
            },
            limits: core.config.tree_limits(),
            ..ProcessSpec::new("bash", &spec.workdir)
        }
    }
}

/// An empty TMPDIR means what none means, and not the current directory.
fn spill_parent(temp_dir: PathBuf) -> PathBuf {
    if temp_dir.as_os_str().is_empty() {
        PathBuf::from("/tmp")
    } else {
        temp_dir
    }
}

#[async_trait]
impl BashExecutor for LocalBash {
    fn resolve(&self, request: BashRequest) -> Result<BashSpec, ResolveError> {
        self.core.config.limits().resolve(request)
    }

    async fn check(&self, spec: &BashSpec) -> Result<(), StartError> {
        self.core.directories.check(&spec.workdir).await
    }

    fn start(&self, spec: &BashSpec) -> Result<Arc<dyn BashProcess>, StartError> {
        let core = &self.core;
        check::length(spec, &core.launcher)?;
        let process = Arc::new(LocalProcess::new(self.log(spec)));
        let bounds = Bounds {
            grace: core.config.grace(),
            drain: core.config.drain(),
        };
        let driver = drive(
            Arc::clone(&process),
            core.launcher.clone(),
            self.process_spec(spec),
            core.stop.clone(),
            core.hurry.clone(),
            bounds,
        );
        match core.processes.spawn("bash command", driver) {
            Ok(_) => Ok(process),
            Err(_) => Err(StartError::Closed { executor: NAME }),
        }
    }

    fn hurry(&self) {
        self.core.hurry.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_temporary_directory_is_none() {
        let parents = ["", "/var/tmp"].map(|temp_dir| spill_parent(temp_dir.into()));
        assert_eq!(parents, ["/tmp", "/var/tmp"].map(PathBuf::from));
    }
}
