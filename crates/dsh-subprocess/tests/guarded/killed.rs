//! A program that starts commands and is killed: what is left of them then.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use dsh_subprocess::ProcessSpec;
use dsh_testkit::eventually;
use dsh_testkit::process::{Marker, is_gone, read_pid};

use crate::common::{bash, inside, launcher, parent, run};

pub(crate) const DIRECTORY: &str = "DSH_TEST_DIRECTORY";

/// The program that is killed. It ends with the test, however that ends.
pub(crate) struct Harness {
    program: Child,
    directory: tempfile::TempDir,
    marker: Marker,
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Harness {
    /// This test program again, for one test. What it starts with [`marked`] has a mark.
    pub(crate) fn start(test: &str) -> Harness {
        let directory = tempfile::tempdir().unwrap();
        let marker = Marker::new();
        let mut command = inside(test, "");
        command
            .env(DIRECTORY, directory.path())
            .envs([marker.env()])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Harness {
            program: command.spawn().unwrap(),
            directory,
            marker,
        }
    }

    /// Those it has started, and itself.
    pub(crate) fn living(&self) -> Vec<u32> {
        self.marker.survivors()
    }

    /// What it has noted.
    pub(crate) async fn noted(&self, name: &str) -> u32 {
        let file = self.directory.path().join(name);
        eventually(name, || read_pid(&file).is_some()).await;
        read_pid(&file).unwrap()
    }

    /// Kills it. Nobody with the mark, nor one of `others`, may be left after `limit`; says when that was so.
    pub(crate) async fn kill(mut self, others: &[u32], limit: Duration) -> Duration {
        let begun = Instant::now();
        self.program.kill().unwrap();
        self.program.wait().unwrap();
        loop {
            // Before the look, which takes its time.
            let elapsed = begun.elapsed();
            let left = [
                self.living(),
                others.iter().copied().filter(|pid| !is_gone(*pid)).collect(),
            ]
            .concat();
            if left.is_empty() {
                return elapsed;
            }
            assert!(elapsed < limit, "left after {elapsed:?}: {left:?}");
            tokio::task::yield_now().await;
        }
    }
}

/// The mark that the program was given goes on to its commands.
pub(crate) fn marked(command: &str) -> ProcessSpec {
    let mut spec = bash(command);
    spec.env
        .extend(std::env::vars_os().filter(|(name, _)| name == "TESTKIT_MARKER"));
    spec
}

/// Tells the test something.
pub(crate) fn note(name: &str, pid: u32) {
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let file = Path::new(&directory).join(name);
    fs::write(file.with_extension("new"), pid.to_string()).unwrap();
    fs::rename(file.with_extension("new"), file).unwrap();
}

/// Starts and drops commands without end. For a program that is killed.
pub(crate) fn start_without_end() {
    run(async {
        let launcher = launcher();
        let mut trees = Vec::new();
        for round in 0.. {
            let command = "trap '' TERM; setsid sleep 60 & sleep 60";
            trees.push(launcher.spawn(marked(command)).await);
            if round == 0 {
                let first = trees[0].as_ref().unwrap();
                note("supervisor", parent(parent(first.tree.pid())));
            }
            if trees.len() > 4 {
                drop(trees.remove(0));
            }
        }
    });
}

/// Kills a program that starts without end, this long after its first start. Says how long anything was left.
pub(crate) async fn kill_starting(test: &str, after: Duration, limit: Duration) -> Duration {
    let harness = Harness::start(test);
    let supervisor = harness.noted("supervisor").await;
    // sleep: a moment that is different each time
    tokio::time::sleep(after).await;
    harness.kill(&[supervisor], limit).await
}
