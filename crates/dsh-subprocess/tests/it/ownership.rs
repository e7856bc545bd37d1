//! Who owns a tree, and what a drop does.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use dsh_subprocess::{LeaderExit, Proof, Stdin};
use dsh_testkit::eventually;
use dsh_testkit::process::{Marker, group_members, is_gone};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::common::{bash, line, run, spawn, start, state};

const STUBBORN: &str = "trap '' TERM; (trap '' TERM; exec sleep 60) & echo ready; while :; do sleep 60; done";

#[test]
fn dropping_the_tree_ends_and_reaps_it() {
    run(async {
        let mut started = start(STUBBORN).await;
        line(&mut started.stdout).await;
        let pid = started.tree.pid();
        drop(started);
        eventually("an empty group", || group_members(pid).is_empty()).await;
        eventually("a reaped leader", || state(pid).is_none()).await;
    });
}

#[test]
fn dropping_the_tree_ends_members_that_outlived_the_leader() {
    run(async {
        let mut started = start("(trap '' TERM; exec sleep 60) & echo ready; exit 0").await;
        line(&mut started.stdout).await;
        started.tree.leader_exit().await;
        let pid = started.tree.pid();
        drop(started);
        eventually("an empty group", || group_members(pid).is_empty()).await;
        eventually("a reaped leader", || state(pid).is_none()).await;
    });
}

#[test]
fn a_tree_is_ended_when_its_runtime_goes() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let pid = runtime.block_on(async {
        let mut started = start(STUBBORN).await;
        line(&mut started.stdout).await;
        let pid = started.tree.pid();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            started.tree.ended().await;
        });
        tasks.detach_all();
        pid
    });
    assert!(!group_members(pid).is_empty());
    runtime.shutdown_background();
    run(async {
        eventually("an empty group", || group_members(pid).is_empty()).await;
        eventually("a reaped leader", || state(pid).is_none()).await;
    });
}

#[test]
fn dropping_the_start_leaves_no_process() {
    run(async {
        let marker = Marker::new();
        let mut dropped = 0;
        for round in 0..40 {
            let mut spec = bash("trap '' TERM; exec sleep 60");
            let (name, value) = marker.env();
            spec.env.push((name.into(), value.into()));
            let mut start = pin!(spawn(spec));
            let waiting = start.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            dropped += usize::from(waiting.is_pending());
            for _ in 0..round * 10 {
                tokio::task::yield_now().await;
            }
        }
        assert!(dropped > 0);
        // A start in its own right comes after all of those that were begun before it.
        start("true").await.tree.ended().await;
        eventually("no survivor", || marker.survivors().is_empty()).await;
    });
}

#[test]
fn waiters_may_come_and_go() {
    run(async {
        let mut spec = bash("read -r line; exit 6");
        spec.stdin = Stdin::Data(b"go\n".to_vec());
        let started = spawn(spec).await.unwrap();
        {
            let mut early = pin!(started.tree.ended());
            let _ = early.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        let (first, second) = tokio::join!(started.tree.ended(), started.tree.ended());
        assert_eq!(first, second);
        assert_eq!(first.leader, Some(LeaderExit::Code(6)));
    });
}

#[test]
fn a_leader_reaped_by_others_is_lost_and_its_group_left_alone() {
    run(async {
        let mut started = start("sleep 60 & echo ready; read -r _ < /dev/null; exit 0").await;
        line(&mut started.stdout).await;
        let pid = Pid::from_raw(started.tree.pid().cast_signed());
        tokio::task::spawn_blocking(move || waitpid(pid, None))
            .await
            .unwrap()
            .unwrap();
        let end = started.tree.ended().await;
        assert_eq!(end.proof, Proof::NotProven, "{end:?}");
        assert_eq!(end.survivors.len(), 1, "{end:?}");
        let survivor = Pid::from_raw(end.survivors[0].pid.cast_signed());
        started.tree.terminate(std::time::Duration::ZERO);
        assert!(!is_gone(end.survivors[0].pid));
        nix::sys::signal::kill(survivor, nix::sys::signal::Signal::SIGKILL).unwrap();
    });
}
