//! What is left in cgroups when the program is killed, alone or with its supervisor and a guard.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dsh_subprocess::Cgroups;
use dsh_testkit::process::{Marker, is_gone, read_pid};
use dsh_testkit::{eventually, eventually_within};
use nix::sys::signal::Signal;

use crate::cgroup::{MOVE_STRANGER, contained, homes, signal};
use crate::common::{
    bash, children, inside, is_inside, launcher_with, line, listed_children, parent, run, start, state,
};

const DIRECTORY: &str = "DSH_TEST_DIRECTORY";
const BASE: &str = "DSH_TEST_BASE";

/// A cgroup in which no other test looks for what was left over, and a process of nobody's tree.
struct Base {
    path: PathBuf,
    stranger: Child,
}

impl Base {
    fn new(below: &Path) -> Base {
        let path = below.join(format!("test-outlived-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let stranger = Command::new("sleep").arg("60").spawn().unwrap();
        Base { path, stranger }
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = self.stranger.kill();
        let _ = self.stranger.wait();
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        let _ = fs::remove_dir(&self.path);
    }
}

/// A program with a tree, in a process of its own.
fn harness(test: &str, directory: &Path, base: &Base, marker: &Marker) -> Child {
    let mut command = inside(test, "");
    command
        .env(DIRECTORY, directory)
        .env(BASE, &base.path)
        .env("STRANGER", base.stranger.id().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .envs([marker.env()]);
    command.spawn().unwrap()
}

/// What that program does: starts `script` and waits for its end by others.
fn be_a_harness(script: &str) {
    run(async {
        let launcher = launcher_with(Cgroups::Within(std::env::var_os(BASE).unwrap().into()));
        let mut spec = bash(script);
        let marks = std::env::vars_os().filter(|(name, _)| {
            ["TESTKIT_MARKER", "STRANGER", DIRECTORY]
                .iter()
                .any(|known| name == known)
        });
        spec.env.extend(marks);
        let mut started = launcher.spawn(spec).await.unwrap();
        line(&mut started.stdout).await;
        let guard = parent(started.tree.pid());
        let directory = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
        for (name, pid) in [("guard", guard), ("supervisor", parent(guard)), ("all", 1)] {
            fs::write(directory.join(name), pid.to_string()).unwrap();
        }
        std::future::pending::<()>().await;
    });
}

#[test]
fn a_killed_program_leaves_no_cgroup() {
    if is_inside() {
        return be_a_harness(&format!(
            "{MOVE_STRANGER}; trap '' TERM; setsid sleep 60 & echo ready; sleep 60"
        ));
    }
    contained(async |_, base| {
        let mut base = Base::new(&base);
        let directory = tempfile::tempdir().unwrap();
        let marker = Marker::new();
        let mut harness = harness(
            "outlived::a_killed_program_leaves_no_cgroup",
            directory.path(),
            &base,
            &marker,
        );
        eventually("a tree", || directory.path().join("all").exists()).await;
        let home = homes(&base.path, harness.id()).remove(0);
        harness.kill().unwrap();
        harness.wait().unwrap();
        eventually_within("nobody", Duration::from_secs(3), || marker.survivors().is_empty()).await;
        eventually("no cgroup", || !home.exists()).await;
        eventually("an empty base", || fs::remove_dir(&base.path).is_ok()).await;
        // Only the cgroup told its guard that there was one more.
        assert_eq!(base.stranger.wait().unwrap().to_string(), "signal: 9 (SIGKILL)");
    });
}

#[test]
fn what_outlived_program_supervisor_and_guard_ends_with_the_next_start() {
    if is_inside() {
        return be_a_harness("trap '' TERM; setsid sleep 60 & echo ready; sleep 60");
    }
    contained(async |_, base| {
        let base = Base::new(&base);
        let launcher = || launcher_with(Cgroups::Within(base.path.clone()));
        let name = "outlived::what_outlived_program_supervisor_and_guard_ends_with_the_next_start";
        let directory = tempfile::tempdir().unwrap();
        let marker = Marker::new();
        let mut harness = harness(name, directory.path(), &base, &marker);
        eventually("a tree", || directory.path().join("all").exists()).await;
        let home = homes(&base.path, harness.id()).remove(0);
        let of = |name: &str| read_pid(&directory.path().join(name)).unwrap();
        let all = [harness.id(), of("supervisor"), of("guard")];
        // While the program lives nobody takes its cgroups for left over.
        drop(start(&launcher(), "exit 0").await);
        for wanted in [Signal::SIGSTOP, Signal::SIGKILL] {
            all.into_iter().for_each(|pid| signal(pid, wanted));
        }
        harness.wait().unwrap();
        eventually("none of the three", || all.into_iter().all(is_gone)).await;
        // Its last process may be started only now, and one in the middle of an exec shows no mark.
        eventually("the command, which lives on", || marker.survivors().len() == 3).await;
        assert!(home.exists());
        let launcher = launcher();
        start(&launcher, "exit 0").await;
        eventually("nobody", || marker.survivors().is_empty()).await;
        eventually("no cgroup", || !home.exists()).await;
        drop(launcher);
        eventually("an empty base", || fs::remove_dir(&base.path).is_ok()).await;
    });
}

#[test]
fn what_keeps_all_guards_and_the_supervisor_from_running_ends_with_the_next_start() {
    if is_inside() {
        return be_a_harness(&format!(
            "read -r _ _ _ supervisor _ < /proc/$PPID/stat; trap '' TERM; echo ready; \
             until [ -e ${DIRECTORY}/go ]; do sleep 0.01; done; \
             all=\"$supervisor $(cat /proc/$supervisor/task/$supervisor/children)\"; \
             while ((SECONDS < 60)); do kill -STOP $all; done"
        ));
    }
    contained(async |_, base| {
        let base = Base::new(&base);
        let name = "outlived::what_keeps_all_guards_and_the_supervisor_from_running_ends_with_the_next_start";
        let directory = tempfile::tempdir().unwrap();
        let marker = Marker::new();
        let mut harness = harness(name, directory.path(), &base, &marker);
        eventually("a tree", || directory.path().join("all").exists()).await;
        let home = homes(&base.path, harness.id()).remove(0);
        let supervisor = read_pid(&directory.path().join("supervisor")).unwrap();
        eventually("ready guards", || children(supervisor) > 8).await;
        let guards = listed_children(supervisor);
        fs::write(directory.path().join("go"), "").unwrap();
        let all = || guards.iter().chain([&supervisor]).copied();
        eventually("all stopped", || all().all(|pid| state(pid) == Some('T'))).await;
        harness.kill().unwrap();
        harness.wait().unwrap();
        let launcher = launcher_with(Cgroups::Within(base.path.clone()));
        start(&launcher, "exit 0").await;
        assert!(!marker.survivors().is_empty() && home.exists());
        let late = Duration::from_secs(30);
        eventually_within("nobody", late, || marker.survivors().is_empty()).await;
        eventually("no supervisor and no guard", || all().all(is_gone)).await;
        eventually("no cgroup", || !home.exists()).await;
        drop(launcher);
        eventually("an empty base", || fs::remove_dir(&base.path).is_ok()).await;
    });
}
