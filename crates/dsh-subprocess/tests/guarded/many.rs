//! Many commands: nothing piles up, and a want of resources passes.

use std::time::Duration;

use dsh_subprocess::{Launcher, LeaderExit, Proof, SpawnError};
use dsh_testkit::eventually;
use dsh_testkit::process::{open_fds, zombie_children};
use tokio::task::JoinSet;

use crate::common::{
    NEVER, alone, bash, children, descriptors, helper_after, launcher, parent, run, run_within, start,
};

/// How many guards are kept ready.
const READY: usize = 8;
/// How long many commands may take on a machine that has other things to do.
const MANY: Duration = Duration::from_secs(300);

#[test]
fn five_hundred_commands_leave_nothing() {
    alone("many::five_hundred_commands_leave_nothing", "", || {
        run_within(MANY, async {
            let launcher = launcher();
            let first = start(&launcher, "sleep 60").await;
            let supervisor = parent(parent(first.tree.pid()));
            first.tree.terminate(NEVER);
            first.tree.ended().await;
            drop(first);
            eventually("ready guards alone", || children(supervisor) == READY).await;
            // Takes in all that stand ready; the rest happens with the same ones.
            start(&launcher, "exit 0").await.tree.ended().await;
            let ours = open_fds().len();
            // With none on its way: a guard that is replaced just now has no descriptor there.
            let mut theirs = 0;
            eventually("ready guards alone", || {
                theirs = descriptors(supervisor);
                children(supervisor) == READY && descriptors(supervisor) == theirs
            })
            .await;
            for round in 0..500 {
                let started = start(&launcher, "exit 0").await;
                if round % 2 == 0 {
                    assert_eq!(started.tree.ended().await.proof, Proof::Guard);
                }
            }
            eventually("ready guards alone", || children(supervisor) == READY).await;
            // How many of the ready guards were taken in, with two descriptors each, is different from time to time.
            eventually("no more descriptors than before", || {
                open_fds().len() <= ours + 2 * READY && descriptors(supervisor) <= theirs
            })
            .await;
            eventually("no zombie", || zombie_children().is_empty()).await;
        });
    });
}

#[test]
fn more_at_once_than_stand_ready_all_run() {
    run(async {
        let launcher = launcher();
        let mut all = JoinSet::new();
        for code in 0..32 {
            let launcher = launcher.clone();
            all.spawn(async move {
                let tree = start(&launcher, &format!("exit {code}")).await.tree;
                assert_eq!(tree.leader_exit().await, LeaderExit::Code(code));
                assert_eq!(tree.ended().await.proof, Proof::Guard);
            });
        }
        all.join_all().await;
    });
}

#[test]
fn a_want_of_descriptors_is_told_as_such_and_passes() {
    let test = "many::a_want_of_descriptors_is_told_as_such_and_passes";
    alone(test, "ulimit -n 48", || {
        run(async {
            let launcher = launcher();
            let mut trees = Vec::new();
            let error = loop {
                match launcher.spawn(bash("exec sleep 60")).await {
                    Ok(started) => trees.push(started),
                    Err(error) => break error,
                }
            };
            assert!(!trees.is_empty());
            assert!(matches!(error, SpawnError::Resources { .. }), "{error:?}");
            assert_eq!(error.errno(), Some(libc::EMFILE));
            // Trees that run are watched on, and those that end make room.
            for started in trees.drain(..) {
                started.tree.terminate(NEVER);
                let end = started.tree.ended().await;
                assert_eq!(end.leader.unwrap().to_string(), "signal: SIGTERM");
            }
            assert_eq!(
                start(&launcher, "exit 1").await.tree.leader_exit().await,
                LeaderExit::Code(1)
            );
            eventually("no zombie", || zombie_children().is_empty()).await;
        });
    });
}

#[test]
fn a_want_of_descriptors_in_the_supervisor_is_told_and_passes() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        // Enough for a few guards.
        let launcher = Launcher::guarded(helper_after(directory.path(), "ulimit -Sn 16")).unwrap();
        let mut trees = Vec::new();
        let error = loop {
            match launcher.spawn(bash("exec sleep 60")).await {
                Ok(started) => trees.push(started.tree),
                Err(error) => break error,
            }
            assert!(trees.len() < 20, "the limit has no effect");
        };
        assert!(matches!(error, SpawnError::Resources { .. }), "{error:?}");
        assert_eq!(error.errno(), Some(libc::EMFILE));
        for tree in trees {
            tree.terminate(NEVER);
            assert_eq!(tree.ended().await.proof, Proof::Guard);
        }
        // The supervisor may still have to close what it has of their guards.
        let next = loop {
            match launcher.spawn(bash("exit 1")).await {
                Ok(started) => break started.tree,
                Err(error) => assert_eq!(error.errno(), Some(libc::EMFILE), "{error}"),
            }
        };
        assert_eq!(next.leader_exit().await, LeaderExit::Code(1));
    });
}

#[test]
fn a_tree_at_rest_wakes_nobody() {
    run(async {
        let launcher = launcher();
        let tree = start(&launcher, "sleep 60 & exit 0").await.tree;
        tree.leader_exit().await;
        let supervisor = parent(parent(tree.members()[0].pid));
        // What follows the start is another ready guard; it is over when nobody woke up for a while.
        let mut before = Vec::new();
        while before != wake_ups(supervisor) {
            before = wake_ups(supervisor);
            // sleep: that nothing happens takes its time
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(
            before.len(),
            1 + 1 + 1 + READY,
            "our thread, the supervisor, the guards"
        );
        // sleep: that nothing happens takes its time
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(wake_ups(supervisor), before);
        tree.terminate(NEVER);
        tree.ended().await;
    });
}

/// How often each of those ran who have to do with the trees: the watching thread of this program, the supervisor, its
/// guards.
fn wake_ups(supervisor: u32) -> Vec<u64> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let keepers = threads.map(|thread| thread.unwrap().path()).filter(|thread| {
        std::fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim() == "dsh-keeper")
    });
    let list = format!("/proc/{supervisor}/task/{supervisor}/children");
    let guards = std::fs::read_to_string(list).unwrap();
    let processes = guards
        .split_whitespace()
        .map(str::to_owned)
        .chain([supervisor.to_string()]);
    let all = keepers.chain(processes.map(|pid| std::path::Path::new("/proc").join(pid)));
    all.map(|process| {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let switches = status
            .lines()
            .filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        switches
            .map(|(_, count)| count.trim().parse::<u64>().unwrap())
            .sum()
    })
    .collect()
}
