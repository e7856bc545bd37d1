//! One launcher with guards for each test, and short ways to use it.

use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dsh_subprocess::{Cgroups, GuardConfig, Launcher, ProcessSpec, Proof, Spawned, TreeEnd};
use dsh_testkit::process::{Marker, is_gone};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// The PATH that processes of these tests get.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Far longer than any test takes: if its end is needed, the test fails.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// The longest an ordinary test may take.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn launcher() -> Launcher {
    launcher_with(Cgroups::Auto)
}

pub(crate) fn launcher_with(cgroups: Cgroups) -> Launcher {
    let helper = GuardConfig::helper(env!("CARGO_BIN_EXE_dsh-guard"));
    Launcher::guarded(helper.cgroups(cgroups)).unwrap()
}

/// A helper that is born with what `prepare` sets in a shell, such as limits.
pub(crate) fn helper_after(directory: &Path, prepare: &str) -> GuardConfig {
    let helper = directory.join("helper");
    let guard = env!("CARGO_BIN_EXE_dsh-guard");
    let script = format!("#!/bin/bash\n{prepare}\nexec -a dsh-guard-supervisor {guard}\n");
    std::fs::write(&helper, script).unwrap();
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    GuardConfig::helper(helper)
}

/// A command of bash in the root directory, with a PATH and nothing else.
pub(crate) fn bash(command: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new("bash", "/");
    spec.bash_command = Some(command.into());
    spec.env = vec![("PATH".into(), PATH.into())];
    spec
}

pub(crate) fn bash_in(directory: &Path, command: &str) -> ProcessSpec {
    ProcessSpec {
        cwd: directory.to_owned(),
        ..bash(command)
    }
}

pub(crate) async fn start(launcher: &Launcher, command: &str) -> Spawned {
    launcher.spawn(bash(command)).await.unwrap()
}

/// A tree whose members all carry a mark in their environment.
pub(crate) struct Marked {
    pub(crate) started: Spawned,
    marker: Marker,
}

impl Marked {
    pub(crate) async fn start(launcher: &Launcher, command: &str) -> Marked {
        Marked::start_spec(launcher, bash(command)).await
    }

    pub(crate) async fn start_spec(launcher: &Launcher, mut spec: ProcessSpec) -> Marked {
        let marker = Marker::new();
        let (name, value) = marker.env();
        spec.env.push((name.into(), value.into()));
        let started = launcher.spawn(spec).await.unwrap();
        Marked { started, marker }
    }

    /// Drops the tree and keeps what finds its members.
    pub(crate) fn drop_tree(self) -> Marker {
        self.marker
    }

    pub(crate) fn living(&self) -> Vec<u32> {
        self.marker.survivors()
    }

    pub(crate) async fn line(&mut self) -> String {
        line(&mut self.started.stdout).await
    }

    /// The proven end, and that nobody who carries the mark is left at that moment.
    pub(crate) async fn assert_ends(&self, proof: Proof) -> TreeEnd {
        let end = self.started.tree.ended().await;
        assert_eq!((end.proof, end.survivors.len()), (proof, 0), "{end:?}");
        assert_eq!(self.living(), Vec::<u32>::new(), "the end was told too early");
        assert!(is_gone(self.started.tree.pid()));
        assert_eq!(self.started.tree.members(), []);
        end
    }
}

/// Runs a test on a runtime of its own, not longer than the limit.
pub(crate) fn run<F: Future>(test: F) -> F::Output {
    run_within(LIMIT, test)
}

pub(crate) fn run_within<F: Future>(limit: Duration, test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let output = runtime.block_on(async { tokio::time::timeout(limit, test).await });
    output.expect("the test takes too long")
}

/// The next line that a process prints.
pub(crate) async fn line(pipe: &mut Receiver) -> String {
    let mut line = Vec::new();
    loop {
        match pipe.read_u8().await {
            Ok(b'\n') => return String::from_utf8(line).unwrap(),
            Ok(byte) => line.push(byte),
            Err(error) => panic!(
                "the output ended after {:?}: {error}",
                String::from_utf8_lossy(&line)
            ),
        }
    }
}

/// All that a process prints.
pub(crate) async fn text(mut pipe: Receiver) -> String {
    let mut text = Vec::new();
    pipe.read_to_end(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1;
    fields.split(' ').nth(1).unwrap().parse().unwrap()
}

/// How many children a process has, zombies too.
pub(crate) fn children(pid: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.map(|list| list.split_whitespace().count()).sum()
}

/// The children of a process with one thread; none when it is gone.
pub(crate) fn listed_children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// How many descriptors a process has open.
pub(crate) fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// The state letter of a process, if there is one.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

const INSIDE: &str = "DSH_TEST_INSIDE";

/// Whether this is the program that [`inside`] started.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// This test program again, for one test, after `prepare` in a shell.
pub(crate) fn inside(test: &str, prepare: &str) -> Command {
    let script = format!("{prepare}\nexec \"$0\" --exact \"$1\" --nocapture --test-threads=1");
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(script)
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(INSIDE, "1");
    shell
}

/// Runs `body` in a program of its own.
pub(crate) fn alone(test: &str, prepare: &str, body: impl FnOnce()) {
    if is_inside() {
        return body();
    }
    let output = inside(test, prepare).output().unwrap();
    let shown = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
}
