//! Processes and memory that the system does not give, and gives again.
//!
//! Root is not bound by the limit of processes, so it becomes somebody else, whose processes are only those of a test.

use std::process::Command;

use dsh_subprocess::{Cgroups, Launcher, LeaderExit, SpawnError};
use dsh_testkit::eventually;
use dsh_testkit::process::zombie_children;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

use crate::common::{
    NEVER, alone, bash, children, launcher, launcher_with, listed_children, parent, run, start,
};

const SOMEBODY_ELSE: &str = "exec setpriv --reuid 54321 --regid 54321 --clear-groups \"$0\" --exact \"$1\" --nocapture --test-threads=1";

/// Runs `body` in a program of its own as a user who is bound by limits.
fn as_somebody(test: &str, body: impl FnOnce()) {
    alone(test, if geteuid().is_root() { SOMEBODY_ELSE } else { "" }, body);
}

/// Changes the soft limit of a process.
fn limit(pid: u32, what: &str, value: &str) {
    let mut prlimit = Command::new("prlimit");
    prlimit.args(["--pid", &pid.to_string(), &format!("--{what}={value}:")]);
    assert!(prlimit.status().unwrap().success());
}

async fn assert_works(launcher: &Launcher) {
    let tree = start(launcher, "exit 4").await.tree;
    assert_eq!(tree.leader_exit().await, LeaderExit::Code(4));
    tree.ended().await;
    eventually("no zombie", || zombie_children().is_empty()).await;
}

fn assert_is(error: &SpawnError, errno: i32) {
    assert!(matches!(error, SpawnError::Resources { .. }), "{error:?}");
    assert_eq!(error.errno(), Some(errno), "{error}");
}

#[test]
fn no_process_for_a_guard_is_told_and_passes() {
    as_somebody("shortage::no_process_for_a_guard_is_told_and_passes", || {
        run(async {
            let launcher = launcher();
            let first = start(&launcher, "exec sleep 60").await.tree;
            let supervisor = parent(parent(first.pid()));
            eventually("ready guards", || children(supervisor) > 8).await;
            limit(supervisor, "nproc", "1");
            // Those that stand ready are processes already, and start theirs with the limit they were born with.
            let mut trees = vec![first];
            let error = loop {
                match launcher.spawn(bash("exec sleep 60")).await {
                    Ok(started) => trees.push(started.tree),
                    Err(error) => break error,
                }
                assert!(trees.len() < 20, "the limit has no effect");
            };
            assert_is(&error, libc::EAGAIN);
            limit(supervisor, "nproc", "1000");
            assert_works(&launcher).await;
            for tree in trees {
                tree.terminate(NEVER);
                tree.ended().await;
            }
        });
    });
}

#[test]
fn no_process_for_a_command_is_told_and_passes() {
    as_somebody("shortage::no_process_for_a_command_is_told_and_passes", || {
        run(async {
            let launcher = launcher();
            let first = start(&launcher, "exec sleep 60").await.tree;
            let guard = parent(first.pid());
            let supervisor = parent(guard);
            eventually("ready guards", || children(supervisor) > 8).await;
            // What is made ready from now on has a limit of its own.
            let ready = listed_children(supervisor)
                .into_iter()
                .filter(|pid| *pid != guard);
            ready.for_each(|guard| limit(guard, "nproc", "1"));
            for _ in 0..4 {
                let error = launcher.spawn(bash("true")).await.unwrap_err();
                assert_is(&error, libc::EAGAIN);
            }
            eventually("guards with room", || children(supervisor) > 8).await;
            // The limited ones that are left.
            while launcher.spawn(bash("true")).await.is_err() {}
            assert_works(&launcher).await;
        });
    });
}

#[test]
fn no_process_for_a_supervisor_or_a_group_is_told_and_passes() {
    as_somebody(
        "shortage::no_process_for_a_supervisor_or_a_group_is_told_and_passes",
        || {
            run(async {
                // By ourselves: while it holds, no other program can be started to change it.
                let limit = |current| {
                    setrlimit(
                        Resource::Nproc,
                        Rlimit {
                            current: Some(current),
                            ..getrlimit(Resource::Nproc)
                        },
                    )
                };
                for launcher in [Launcher::groups(), launcher()] {
                    limit(1).unwrap();
                    let error = launcher.spawn(bash("true")).await.unwrap_err();
                    limit(1000).unwrap();
                    assert_eq!(error.errno(), Some(libc::EAGAIN), "{error}");
                    assert_works(&launcher).await;
                }
            });
        },
    );
}

/// The memory that a process has mapped, in bytes.
fn mapped(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn no_memory_for_a_command_is_told_and_passes() {
    run(async {
        // With a cgroup, a guard finds the stack in what it has.
        let launcher = launcher_with(Cgroups::Off);
        let first = start(&launcher, "exec sleep 60").await.tree;
        let guard = parent(first.pid());
        let supervisor = parent(guard);
        eventually("ready guards", || children(supervisor) > 8).await;
        let ready = listed_children(supervisor)
            .into_iter()
            .filter(|pid| *pid != guard);
        // Room for what it has, not for the stack that a new process starts on.
        ready.for_each(|guard| limit(guard, "as", &mapped(guard).to_string()));
        let error = launcher.spawn(bash("true")).await.unwrap_err();
        assert_is(&error, libc::ENOMEM);
        while launcher.spawn(bash("true")).await.is_err() {}
        assert_works(&launcher).await;
    });
}

#[test]
fn a_supervisor_without_memory_costs_no_command() {
    run(async {
        let launcher = launcher();
        let first = start(&launcher, "exec sleep 60").await.tree;
        let supervisor = parent(parent(first.pid()));
        eventually("ready guards", || children(supervisor) > 8).await;
        limit(supervisor, "as", "4096");
        // It has what it needs, or it is lost and replaced.
        for _ in 0..20 {
            match launcher.spawn(bash("exit 4")).await {
                Ok(started) => assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(4)),
                Err(error) => assert_is(&error, libc::ENOMEM),
            }
        }
        limit(supervisor, "as", "unlimited");
        while launcher.spawn(bash("true")).await.is_err() {}
        assert_works(&launcher).await;
        first.terminate(NEVER);
        first.ended().await;
    });
}
