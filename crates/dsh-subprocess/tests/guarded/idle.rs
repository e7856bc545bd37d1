//! What a stranger, or a command of the same user, can do to guards that wait and to their supervisor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dsh_subprocess::{Launcher, LeaderExit, ProcessTree, Proof, Spawned};
use dsh_testkit::eventually;
use nix::sys::signal::Signal;

use crate::cgroup::{left_out, signal};
use crate::common::{NEVER, children, launcher, listed_children, parent, run, start, state, text};

/// How many guards wait.
const READY: usize = 8;

/// All that a command may have from its guard, on a line each.
const INHERITED: &str = "ulimit -Sn; ulimit -Hn; nice; umask; cat /proc/$$/oom_score_adj; \
                         taskset -pc $$ | sed 's/.*: //'; ionice -p $$; chrt -p $$ | sed 's/.*: //'; \
                         cat /proc/self/timerslack_ns /proc/self/coredump_filter";

/// What changes one of these for the process `$0`.
const CHANGES: [&str; 8] = [
    "prlimit --pid $0 --nofile=64:128",
    "renice -n 5 -p $0",
    "taskset -p 1 $0",
    "ionice -c 3 -p $0",
    "echo 700 > /proc/$0/oom_score_adj",
    "chrt --batch -p 0 $0",
    "echo 12345678 > /proc/$0/timerslack_ns",
    "echo 7 > /proc/$0/coredump_filter",
];

/// A launcher with a command that runs, the supervisor of that, and the guards that wait.
async fn at_rest() -> (Launcher, ProcessTree, u32, Vec<u32>) {
    let launcher = launcher();
    let first = start(&launcher, "exec sleep 60").await.tree;
    let guard = parent(first.pid());
    let supervisor = parent(guard);
    eventually("ready guards", || children(supervisor) > READY).await;
    let mut ready = listed_children(supervisor);
    ready.retain(|pid| *pid != guard);
    (launcher, first, supervisor, ready)
}

/// Whether a process could be changed: it may have gone.
fn change(pid: u32, how: &str) -> bool {
    let mut shell = Command::new("bash");
    shell.args(["-c", how, &pid.to_string()]);
    let output = shell.stdout(Stdio::null()).stderr(Stdio::null()).status();
    output.unwrap().success()
}

/// A command under a guard that is not one of these, which has what the first one had.
async fn assert_starts_elsewhere(launcher: &Launcher, not: &[u32]) {
    let Spawned { tree, stdout, .. } = start(launcher, "echo $PPID; exit 4").await;
    assert_eq!(tree.leader_exit().await, LeaderExit::Code(4));
    assert_eq!(tree.ended().await.proof, Proof::Guard);
    let guard: u32 = text(stdout).await.trim().parse().unwrap();
    assert!(!not.contains(&guard), "{guard} was used");
}

async fn inherited(launcher: &Launcher) -> String {
    text(start(launcher, INHERITED).await.stdout).await
}

#[test]
fn guards_that_were_killed_while_they_waited_are_no_obstacle() {
    run(async {
        let (launcher, _first, _, ready) = at_rest().await;
        ready.iter().for_each(|pid| signal(*pid, Signal::SIGKILL));
        assert_starts_elsewhere(&launcher, &ready).await;
    });
}

#[test]
fn a_guard_that_was_killed_before_it_read_its_order_makes_place_for_another_one() {
    run(async {
        let (launcher, _first, supervisor, ready) = at_rest().await;
        // So nobody tells that they are gone until whoever waits for the start lets it go on.
        signal(supervisor, Signal::SIGSTOP);
        eventually("a stopped supervisor", || state(supervisor) == Some('T')).await;
        ready.iter().for_each(|pid| signal(*pid, Signal::SIGKILL));
        eventually("dead guards", || ready.iter().all(|pid| state(*pid) == Some('Z'))).await;
        assert_starts_elsewhere(&launcher, &ready).await;
    });
}

#[test]
fn a_guard_that_was_sent_a_signal_while_it_waited_starts_nothing() {
    run(async {
        for sent in [Signal::SIGTERM, Signal::SIGUSR2] {
            let (launcher, _first, _, ready) = at_rest().await;
            ready.iter().for_each(|pid| signal(*pid, sent));
            assert_starts_elsewhere(&launcher, &ready).await;
        }
    });
}

#[test]
fn a_guard_that_was_changed_while_it_waited_starts_nothing() {
    run(async {
        for how in CHANGES {
            let (launcher, first, supervisor, _) = at_rest().await;
            let before = inherited(&launcher).await;
            eventually("ready guards", || children(supervisor) > READY).await;
            let mut ready = listed_children(supervisor);
            ready.retain(|pid| *pid != parent(first.pid()));
            let changed = ready.iter().filter(|pid| change(**pid, how)).count();
            assert!(changed >= READY - 1, "{how}: {changed}");
            assert_starts_elsewhere(&launcher, &ready).await;
            assert_eq!(inherited(&launcher).await, before, "{how}");
        }
    });
}

#[test]
fn a_supervisor_that_was_changed_makes_no_more_guards() {
    run(async {
        for how in CHANGES {
            let (launcher, first, supervisor, _) = at_rest().await;
            let before = inherited(&launcher).await;
            assert!(change(supervisor, how), "{how}");
            let mut trees = Vec::new();
            // More than stand ready.
            for _ in 0..READY + 4 {
                let Spawned { tree, mut stdout, .. } =
                    start(&launcher, &format!("{INHERITED}; echo; exec sleep 60")).await;
                let mut seen = String::new();
                while let line = crate::common::line(&mut stdout).await
                    && !line.is_empty()
                {
                    seen.push_str(&line);
                    seen.push('\n');
                }
                assert_eq!(seen, before, "{how}");
                trees.push(tree);
            }
            let last = &trees[trees.len() - 1];
            assert_ne!(parent(parent(last.pid())), supervisor, "{how}");
            // Those that it has are still its own.
            trees.push(first);
            for tree in trees {
                tree.terminate(NEVER);
                assert_eq!(tree.ended().await.proof, Proof::Guard);
            }
            eventually("a supervisor that is gone", || state(supervisor).is_none()).await;
        }
    });
}

#[test]
fn a_guard_that_was_moved_to_another_cgroup_starts_nothing() {
    let Some(cgroup) = Elsewhere::new() else {
        return left_out("no cgroups of version 1 can be made here");
    };
    run(async {
        let (launcher, first, supervisor, _) = at_rest().await;
        let own = parent(first.pid());
        let mut ready = listed_children(supervisor);
        ready.retain(|pid| *pid != own);
        let procs = cgroup.0.join("cgroup.procs");
        let moved = ready
            .iter()
            .filter(|pid| fs::write(&procs, pid.to_string()).is_ok())
            .count();
        assert!(moved >= READY - 1, "{moved}");
        assert_starts_elsewhere(&launcher, &ready).await;
        let inside = text(start(&launcher, "cat /proc/self/cgroup").await.stdout).await;
        assert!(!inside.contains("test-elsewhere"), "{inside}");
    });
}

/// A cgroup of version 1 that goes with its test.
struct Elsewhere(PathBuf);

impl Elsewhere {
    fn new() -> Option<Elsewhere> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let first = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mut places = first.filter(|fields| fields.get(2) == Some(&"cgroup"));
        places.find_map(|fields| {
            let path = Path::new(fields[1]).join(format!("test-elsewhere-{}", std::process::id()));
            fs::create_dir(&path).ok().map(|()| Elsewhere(path))
        })
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // Those that were moved there go with their launcher.
        for _ in 0..1000 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }
}
