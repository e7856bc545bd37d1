//! An executor of its own for each test, and short ways to use it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_bash::{BashExecutor, BashProcess, BashRequest, RunError, RunResult, run};
use dsh_bash_local::{InstallError, LocalBash, LocalBashConfig};
use dsh_output::{OutputSource, Rendering};
use dsh_scope::Scope;
use dsh_subprocess::{Cgroups, GuardConfig, Launcher};
use dsh_testkit::eventually;
use tokio_util::sync::CancellationToken;

/// Everything a command left running ends with it: dropping the scope ends the executor.
pub(crate) struct Fixture {
    pub(crate) scope: Scope,
    pub(crate) bash: LocalBash,
    pub(crate) dir: tempfile::TempDir,
}

/// The defaults of the tests: a short grace.
pub(crate) fn config() -> LocalBashConfig {
    LocalBashConfig {
        grace_ms: 200.0,
        ..LocalBashConfig::default()
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(config())
    }

    /// Under guards. The program of this test cannot be one, so a helper must be named.
    pub(crate) fn guarded() -> Self {
        Self::guarded_with(Cgroups::Auto)
    }

    pub(crate) fn guarded_with(cgroups: Cgroups) -> Self {
        Self::try_guarded(cgroups, config()).unwrap()
    }

    pub(crate) fn try_guarded(cgroups: Cgroups, config: LocalBashConfig) -> Result<Self, InstallError> {
        let Some(helper) = std::env::var_os("DSH_GUARD") else {
            panic!(
                "DSH_GUARD must name the helper: `cargo build -p dsh-subprocess --bin dsh-guard`, then the \
                 absolute path of target/debug/dsh-guard; `cargo xtask test` does both"
            )
        };
        let scope = Scope::root("test");
        let launcher = Launcher::guarded(GuardConfig::helper(helper).cgroups(cgroups)).unwrap();
        let bash = LocalBash::with_launcher(&scope, config, launcher)?;
        Ok(Self {
            scope,
            bash,
            dir: tempfile::tempdir().unwrap(),
        })
    }

    pub(crate) fn with(config: LocalBashConfig) -> Self {
        let scope = Scope::root("test");
        let bash = LocalBash::install(&scope, config).unwrap();
        Self {
            scope,
            bash,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn with_ambient(config: LocalBashConfig, ambient: &[(&str, &str)]) -> Self {
        let scope = Scope::root("test");
        let path = std::env::var_os("PATH").map(|path| (OsString::from("PATH"), path));
        let ambient = ambient.iter().map(|(name, value)| (name.into(), value.into()));
        let bash = LocalBash::with_ambient(&scope, config, ambient.chain(path)).unwrap();
        Self {
            scope,
            bash,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// A request for `command` in the test's own directory.
    pub(crate) fn request(&self, command: &str) -> BashRequest {
        BashRequest {
            workdir: Some(self.dir.path().into()),
            ..BashRequest::new(command)
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) async fn run(&self, command: &str) -> RunResult {
        self.run_request(self.request(command), &CancellationToken::new())
            .await
            .unwrap()
    }

    pub(crate) async fn run_request(
        &self,
        request: BashRequest,
        token: &CancellationToken,
    ) -> Result<RunResult, RunError> {
        run(&self.bash, &self.bash.resolve(request)?, token).await
    }

    pub(crate) fn start(&self, command: &str) -> Arc<dyn BashProcess> {
        self.start_request(self.request(command))
    }

    pub(crate) fn start_request(&self, request: BashRequest) -> Arc<dyn BashProcess> {
        self.bash.start(&self.bash.resolve(request).unwrap()).unwrap()
    }

    /// Ends a process that no tree contains any more.
    pub(crate) async fn kill(&self, pid: u32) {
        self.run(&format!("kill -KILL {pid}")).await;
        dsh_testkit::process::gone(pid).await;
    }
}

/// What a process has output so far.
pub(crate) fn text(process: &dyn BashProcess) -> String {
    process
        .output()
        .reader(Rendering::Sections)
        .read_from(0, usize::MAX)
        .text
}

/// Waits until `process` has said `marker`.
pub(crate) async fn said(process: &dyn BashProcess, marker: &str) {
    eventually(marker, || text(process).contains(marker)).await;
}

/// Waits until `file` names a process.
pub(crate) async fn pid_in(file: &Path) -> u32 {
    let mut pid = None;
    eventually("pid file", || {
        pid = dsh_testkit::process::read_pid(file);
        pid.is_some()
    })
    .await;
    pid.unwrap()
}
