//! What is left when the program itself is killed.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use dsh_testkit::process::{Marker, is_gone, read_pid};
use dsh_testkit::{eventually, eventually_within};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Marked, bash, inside, is_inside, launcher, parent, run, state};

const DIRECTORY: &str = "DSH_TEST_DIRECTORY";

/// TERM, half a second, KILL; the rest is for a machine that does other things, too.
const SOON: Duration = Duration::from_secs(3);

/// The program that is killed. It ends with the test, however that ends.
struct Harness(Child);

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A stopped supervisor that goes on with the end of the test, and ends everything then.
struct GoOn(u32);

impl Drop for GoOn {
    fn drop(&mut self) {
        if state(self.0) == Some('T') {
            let _ = kill(Pid::from_raw(self.0.cast_signed()), Signal::SIGCONT);
        }
    }
}

fn harness(test: &str, directory: &Path, marker: &Marker) -> Harness {
    let mut command = inside(test, "");
    command
        .env(DIRECTORY, directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.envs([marker.env()]);
    Harness(command.spawn().unwrap())
}

/// The mark that the program was given goes on to its commands.
fn marked(command: &str) -> dsh_subprocess::ProcessSpec {
    let mut spec = bash(command);
    spec.env
        .extend(std::env::vars_os().filter(|(name, _)| name == "TESTKIT_MARKER"));
    spec
}

fn note(name: &str, pid: u32) {
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let file = Path::new(&directory).join(name);
    fs::write(file.with_extension("new"), pid.to_string()).unwrap();
    fs::rename(file.with_extension("new"), file).unwrap();
}

#[test]
fn a_killed_program_leaves_nothing() {
    let name = "harness::a_killed_program_leaves_nothing";
    if is_inside() {
        return run(async {
            let launcher = launcher();
            let mut trees = Vec::new();
            for command in [
                "sleep 60 & wait",
                "setsid sleep 60 & (setsid bash -c 'sleep 60 & disown') & nohup sleep 60 >/dev/null & wait",
                "trap '' TERM; (exec >/dev/null 2>&1; while :; do sleep 60; done) & wait; sleep 60",
                "while :; do (setsid sleep 0.2 &); sleep 0.05; done",
                "sleep 60 & kill -STOP $! $$",
            ] {
                trees.push(launcher.spawn(marked(command)).await.unwrap());
            }
            eventually("members", || trees[1].tree.members().len() >= 3).await;
            note("supervisor", parent(parent(trees[0].tree.pid())));
            std::future::pending::<()>().await;
        });
    }
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let marker = Marker::new();
        let mut harness = harness(name, directory.path(), &marker);
        let file = directory.path().join("supervisor");
        eventually("all trees", || read_pid(&file).is_some()).await;
        eventually("members of all trees", || marker.survivors().len() > 10).await;
        harness.0.kill().unwrap();
        harness.0.wait().unwrap();
        eventually_within("nobody", SOON, || marker.survivors().is_empty()).await;
        let supervisor = read_pid(&file).unwrap();
        eventually_within("no supervisor", SOON, || is_gone(supervisor)).await;
    });
}

#[test]
fn a_program_killed_at_any_moment_of_a_start_leaves_nothing() {
    let name = "harness::a_program_killed_at_any_moment_of_a_start_leaves_nothing";
    if is_inside() {
        return run(async {
            let launcher = launcher();
            let mut trees = Vec::new();
            for round in 0.. {
                let command = "trap '' TERM; setsid sleep 60 & sleep 60";
                trees.push(launcher.spawn(marked(command)).await);
                if round == 0 {
                    note(
                        "supervisor",
                        parent(parent(trees[0].as_ref().unwrap().tree.pid())),
                    );
                }
                if trees.len() > 4 {
                    drop(trees.remove(0));
                }
            }
        });
    }
    run(async {
        for round in 0..8_u64 {
            let directory = tempfile::tempdir().unwrap();
            let marker = Marker::new();
            let mut harness = harness(name, directory.path(), &marker);
            let file = directory.path().join("supervisor");
            eventually("the first start", || read_pid(&file).is_some()).await;
            // sleep: a moment that is different each time
            tokio::time::sleep(Duration::from_micros(round * 1_700)).await;
            harness.0.kill().unwrap();
            harness.0.wait().unwrap();
            let supervisor = read_pid(&file).unwrap();
            eventually_within("nobody", SOON, || {
                marker.survivors().is_empty() && is_gone(supervisor)
            })
            .await;
        }
    });
}

#[test]
fn a_command_that_stopped_guard_and_supervisor_does_not_outlive_the_program() {
    let name = "harness::a_command_that_stopped_guard_and_supervisor_does_not_outlive_the_program";
    if is_inside() {
        return run(async {
            let script = "read -r _ _ _ supervisor _ < /proc/$PPID/stat; trap '' TERM; setsid sleep 60 & \
                          until [ -e go ]; do sleep 0.01; done; \
                          kill -STOP $supervisor $PPID; while :; do sleep 60; done";
            let mut spec = marked(script);
            spec.cwd = std::env::var_os(DIRECTORY).unwrap().into();
            let started = launcher().spawn(spec).await.unwrap();
            // Not any sooner: whoever waits for a start lets them go on.
            note("go", 0);
            let guard = parent(started.tree.pid());
            let supervisor = parent(guard);
            eventually("both stopped", || {
                [guard, supervisor].iter().all(|pid| state(*pid) == Some('T'))
            })
            .await;
            note("guard", guard);
            note("supervisor", supervisor);
            std::future::pending::<()>().await;
        });
    }
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let marker = Marker::new();
        let mut harness = harness(name, directory.path(), &marker);
        let file = directory.path().join("supervisor");
        eventually("a stopped supervisor", || read_pid(&file).is_some()).await;
        assert!(marker.survivors().len() >= 3);
        harness.0.kill().unwrap();
        harness.0.wait().unwrap();
        let both = ["guard", "supervisor"].map(|name| read_pid(&directory.path().join(name)).unwrap());
        let _end = GoOn(both[1]);
        eventually_within("nobody", SOON, || {
            marker.survivors().is_empty() && both.into_iter().all(is_gone)
        })
        .await;
    });
}

#[test]
fn a_dropped_launcher_and_its_trees_take_the_supervisor_along() {
    run(async {
        let launcher = launcher();
        let marked = Marked::start(&launcher, "trap '' TERM; while :; do sleep 60; done").await;
        let supervisor = parent(parent(marked.started.tree.pid()));
        drop(launcher);
        assert!(!is_gone(supervisor), "a tree lives");
        let marker = marked.drop_tree();
        eventually("nobody", || marker.survivors().is_empty()).await;
        eventually("no supervisor, not even a zombie", || {
            !Path::new(&format!("/proc/{supervisor}")).exists()
        })
        .await;
    });
}
