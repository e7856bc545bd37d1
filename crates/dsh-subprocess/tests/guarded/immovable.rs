//! Guards and supervisors that no signal reaches, not even a KILL: frozen in a cgroup of version 1, which takes root.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dsh_subprocess::{Cgroups, LeaderExit, Proof};
use dsh_testkit::eventually;

use crate::cgroup::left_out;
use crate::common::{
    Marked, SHORT, bash, children, launcher_with, listed_children, parent, run, start, state,
};

/// A cgroup of version 1 in which nobody runs. Who is in it goes on when it is dropped.
struct Freezer(PathBuf);

impl Freezer {
    fn new(name: &str) -> Option<Freezer> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find(|line| {
            line.rsplit_once(" - cgroup ")
                .is_some_and(|(_, rest)| rest.contains("freezer"))
        })?;
        let place = Path::new(mount.split(' ').nth(4)?).join(format!("test-{name}-{}", std::process::id()));
        fs::create_dir(&place).ok()?;
        let freezer = Freezer(place);
        fs::write(freezer.0.join("freezer.state"), "FROZEN").ok()?;
        Some(freezer)
    }

    async fn hold(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
        eventually("a frozen process", || state(pid) == Some('D')).await;
    }

    fn thaw(&self) {
        let _ = fs::write(self.0.join("freezer.state"), "THAWED");
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        // Who is in it goes first.
        let until = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_guard_that_cannot_be_killed_is_named() {
    run(async {
        for cgroups in [Cgroups::Auto, Cgroups::Off] {
            let Some(freezer) = Freezer::new("guard") else {
                return left_out("nobody can be frozen here");
            };
            let launcher = launcher_with(cgroups);
            let mut spec = bash("trap '' TERM; setsid sleep 60 & echo ready; sleep 60");
            spec.kill_bound = Duration::from_millis(300);
            let mut marked = Marked::start_spec(&launcher, spec).await;
            marked.line().await;
            let guard = parent(marked.started.tree.pid());
            freezer.hold(guard).await;
            marked.started.tree.terminate(SHORT);
            let end = marked.started.tree.ended().await;
            assert_eq!(end.proof, Proof::NotProven);
            let named: Vec<u32> = end.survivors.iter().map(|member| member.pid).collect();
            assert_eq!(named, [guard], "{end:?}");
            assert_eq!(marked.living(), Vec::<u32>::new(), "all others were ended");
            // And when it can go, it does, and that is told.
            freezer.thaw();
            let tree = &marked.started.tree;
            tokio::time::timeout(Duration::from_secs(10), async {
                while tree.ended().await.proof == Proof::NotProven {
                    tokio::task::yield_now().await;
                }
            })
            .await
            .unwrap();
            marked.assert_ends(Proof::Supervisor).await;
        }
    });
}

#[test]
fn a_supervisor_that_cannot_be_killed_is_replaced() {
    run(async {
        let Some(freezer) = Freezer::new("supervisor") else {
            return left_out("nobody can be frozen here");
        };
        let launcher = launcher_with(Cgroups::Auto);
        let first = start(&launcher, "exec sleep 60").await.tree;
        let supervisor = parent(parent(first.pid()));
        freezer.hold(supervisor).await;
        let mut trees = vec![first];
        // One after the other, because a start that finds none ready waits, and so would all others.
        while parent(parent(trees[trees.len() - 1].pid())) == supervisor {
            trees.push(start(&launcher, "exec sleep 60").await.tree);
            assert!(trees.len() < 30, "who makes guards?");
        }
        let next = start(&launcher, "exit 4").await.tree;
        assert_eq!(next.leader_exit().await, LeaderExit::Code(4));
        for tree in trees {
            tree.terminate(SHORT);
            assert_eq!(tree.ended().await.proof, Proof::Guard);
        }
    });
}

#[test]
fn ready_guards_that_do_not_run_are_replaced() {
    run(async {
        let Some(freezer) = Freezer::new("ready") else {
            return left_out("nobody can be frozen here");
        };
        let launcher = launcher_with(Cgroups::Auto);
        let first = start(&launcher, "exec sleep 60").await.tree;
        let guard = parent(first.pid());
        let supervisor = parent(guard);
        eventually("ready guards", || children(supervisor) > 8).await;
        let mut ready = listed_children(supervisor);
        ready.retain(|pid| *pid != guard);
        for pid in ready {
            freezer.hold(pid).await;
        }
        let next = start(&launcher, "exit 4").await.tree;
        assert_eq!(next.leader_exit().await, LeaderExit::Code(4));
        assert_eq!(next.ended().await.proof, Proof::Guard);
        freezer.thaw();
    });
}
