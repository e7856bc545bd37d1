//! What is left when the program itself is killed.

use std::path::Path;
use std::time::Duration;

use dsh_testkit::eventually;
use dsh_testkit::process::is_gone;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Marked, is_inside, launcher, parent, run, state};
use crate::killed::{DIRECTORY, Harness, kill_starting, marked, note, start_without_end};

/// The longest that anything may be left: TERM, half a second, KILL. Other tests run at the same time; the long checks
/// allow a second.
const SOON: Duration = Duration::from_secs(3);

/// A stopped supervisor that goes on with the end of the test, and ends everything then.
struct GoOn(u32);

impl Drop for GoOn {
    fn drop(&mut self) {
        if state(self.0) == Some('T') {
            let _ = kill(Pid::from_raw(self.0.cast_signed()), Signal::SIGCONT);
        }
    }
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
        let harness = Harness::start(name);
        let supervisor = harness.noted("supervisor").await;
        eventually("members of all trees", || harness.living().len() > 10).await;
        harness.kill(&[supervisor], SOON).await;
    });
}

#[test]
fn a_program_killed_at_any_moment_of_a_start_leaves_nothing() {
    let name = "harness::a_program_killed_at_any_moment_of_a_start_leaves_nothing";
    if is_inside() {
        return start_without_end();
    }
    run(async {
        for round in 0..8_u64 {
            kill_starting(name, Duration::from_micros(round * 1_700), SOON).await;
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
        let harness = Harness::start(name);
        let supervisor = harness.noted("supervisor").await;
        let guard = harness.noted("guard").await;
        let _end = GoOn(supervisor);
        assert!(harness.living().len() >= 3);
        harness.kill(&[guard, supervisor], SOON).await;
    });
}

#[test]
fn a_command_that_traces_its_guard_does_not_outlive_the_program() {
    let name = "harness::a_command_that_traces_its_guard_does_not_outlive_the_program";
    if is_inside() {
        return run(async {
            // Attaches, waits for the stop, and never lets it go on.
            let script = "trap '' TERM; setsid sleep 60 & exec python3 -c 'import ctypes, sys, time\n\
                          libc = ctypes.CDLL(None)\n\
                          assert libc.ptrace(16, int(sys.argv[1]), 0, 0) == 0\n\
                          time.sleep(60)' $PPID";
            let started = launcher().spawn(marked(script)).await.unwrap();
            let guard = parent(started.tree.pid());
            eventually("a traced guard", || state(guard) == Some('t')).await;
            note("guard", guard);
            note("supervisor", parent(guard));
            std::future::pending::<()>().await;
        });
    }
    run(async {
        let harness = Harness::start(name);
        let supervisor = harness.noted("supervisor").await;
        let guard = harness.noted("guard").await;
        assert!(harness.living().len() >= 3);
        harness.kill(&[guard, supervisor], Duration::from_secs(15)).await;
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
