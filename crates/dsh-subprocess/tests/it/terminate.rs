//! How a tree is ended.

use std::time::{Duration, Instant};

use dsh_subprocess::{LeaderExit, Proof};
use dsh_testkit::eventually;
use dsh_testkit::process::{group_members, is_gone};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{assert_empty, bash_in, line, pid_line, run, start, state, text};

/// Far longer than any test takes: if its end is needed, the test fails.
const NEVER: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(200);

fn signal(exit: LeaderExit) -> String {
    exit.to_string()
}

#[test]
fn c310_term_ends_what_does_not_resist() {
    run(async {
        let mut started = start("sleep 60 & sleep 60 & echo ready; wait").await;
        line(&mut started.stdout).await;
        started.tree.terminate(NEVER);
        assert_eq!(signal(started.tree.leader_exit().await), "signal: SIGTERM");
        assert_empty(&started.tree.ended().await, started.tree.pid());
    });
}

#[test]
fn c311_kill_follows_after_the_grace_and_not_before() {
    run(async {
        let mut started = start("trap '' TERM; echo ready; while :; do sleep 60; done").await;
        line(&mut started.stdout).await;
        let begun = Instant::now();
        started.tree.terminate(SHORT);
        let end = started.tree.ended().await;
        assert!(begun.elapsed() >= SHORT);
        assert_eq!(signal(end.leader.unwrap()), "signal: SIGKILL");
        assert_empty(&end, started.tree.pid());
    });
}

#[test]
fn c348_a_member_that_ignores_term_is_killed_although_the_leader_left_at_once() {
    run(async {
        let script =
            "trap 'exit 0' TERM; (trap '' TERM; echo $BASHPID; exec sleep 60 >/dev/null 2>&1) & wait";
        let mut started = start(script).await;
        let member = pid_line(&mut started.stdout).await;
        started.tree.terminate(SHORT);
        assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(0));
        assert!(!is_gone(member), "it ignores TERM");
        let end = started.tree.ended().await;
        assert!(is_gone(member));
        assert_empty(&end, started.tree.pid());
    });
}

#[test]
fn c348_a_member_that_outlived_the_leader_is_ended_too() {
    run(async {
        let mut started =
            start("(trap '' TERM; echo $BASHPID; exec sleep 60 >/dev/null 2>&1) & exit 5").await;
        let member = pid_line(&mut started.stdout).await;
        assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(5));
        started.tree.terminate(SHORT);
        let end = started.tree.ended().await;
        assert!(is_gone(member));
        assert_eq!(end.leader, Some(LeaderExit::Code(5)));
        assert_empty(&end, started.tree.pid());
    });
}

#[test]
fn c312_a_group_that_went_in_time_needs_no_kill_whoever_holds_its_pipes() {
    run(async {
        let mut started = start("setsid sleep 60 & echo $!; echo ready; wait").await;
        let escaped = pid_line(&mut started.stdout).await;
        line(&mut started.stdout).await;
        eventually("it to leave the group", || {
            group_members(started.tree.pid()).len() == 1
        })
        .await;
        started.tree.terminate(NEVER);
        let end = started.tree.ended().await;
        assert_eq!(
            (end.proof, signal(end.leader.unwrap())),
            (Proof::Group, "signal: SIGTERM".to_owned())
        );
        assert!(!is_gone(escaped));
        kill(Pid::from_raw(escaped.cast_signed()), Signal::SIGKILL).unwrap();
        assert_eq!(
            text(started.stdout).await,
            "",
            "the pipe ends with its last holder"
        );
    });
}

#[test]
fn stopped_processes_act_on_term() {
    run(async {
        let mut started = start("sleep 60 & kill -STOP $!; echo $!; kill -STOP $$").await;
        let member = pid_line(&mut started.stdout).await;
        let leader = started.tree.pid();
        eventually("both to be stopped", || {
            state(member) == Some('T') && state(leader) == Some('T')
        })
        .await;
        started.tree.terminate(NEVER);
        let end = started.tree.ended().await;
        assert_eq!(signal(end.leader.unwrap()), "signal: SIGTERM");
        assert_empty(&end, leader);
    });
}

#[test]
fn a_hundred_members_that_ignore_term_are_ended() {
    run(async {
        let script = "trap '' TERM; for i in {1..100}; do sleep 60 & done; echo ready; wait";
        let mut started = start(script).await;
        line(&mut started.stdout).await;
        let pid = started.tree.pid();
        eventually("all of them to run", || started.tree.members().len() == 100).await;
        started.tree.terminate(SHORT);
        assert_empty(&started.tree.ended().await, pid);
    });
}

#[test]
fn a_group_that_forks_without_end_is_ended() {
    run(async {
        let script = "trap '' TERM; churn() { while :; do (:) & (sleep 0.02) & wait -n; done; }; \
                      churn & churn & echo ready; churn";
        let mut started = start(script).await;
        line(&mut started.stdout).await;
        started.tree.terminate(SHORT);
        let end = started.tree.ended().await;
        assert_eq!(signal(end.leader.unwrap()), "signal: SIGKILL");
        assert_empty(&end, started.tree.pid());
    });
}

#[test]
fn a_chain_of_short_members_is_alive_until_its_last_link() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        // Each link starts the next one and exits: no process lives for long, the group does.
        let script =
            "link() { if [ $1 = 0 ]; then echo > $$; else (link $(($1 - 1)) &) ; fi; }; link 60; exit 0";
        let mut trees = Vec::new();
        for _ in 0..6 {
            trees.push(
                crate::common::spawn(bash_in(directory.path(), script))
                    .await
                    .unwrap()
                    .tree,
            );
        }
        for tree in trees {
            let end = tree.ended().await;
            let last = directory.path().join(tree.pid().to_string());
            assert!(last.exists(), "the end was told while the chain went on");
            assert_empty(&end, tree.pid());
        }
    });
}

#[test]
fn c317_a_second_call_signals_nothing_and_only_shortens_the_grace() {
    run(async {
        let script = "trap 'echo term' TERM; echo ready; while :; do sleep 0.05; done";
        let mut started = start(script).await;
        line(&mut started.stdout).await;
        started.tree.terminate(NEVER);
        line(&mut started.stdout).await;
        let begun = Instant::now();
        started.tree.terminate(SHORT);
        started.tree.terminate(NEVER);
        started.tree.terminate(Duration::MAX);
        let end = started.tree.ended().await;
        assert!(begun.elapsed() >= SHORT);
        assert_eq!(signal(end.leader.unwrap()), "signal: SIGKILL");
        assert_eq!(text(started.stdout).await, "", "one TERM in all");
    });
}

#[test]
fn without_grace_kill_comes_at_once() {
    run(async {
        let mut started = start("trap '' TERM; echo ready; while :; do sleep 60; done").await;
        line(&mut started.stdout).await;
        started.tree.terminate(Duration::ZERO);
        assert_empty(&started.tree.ended().await, started.tree.pid());
    });
}

#[test]
fn a_termination_that_meets_the_natural_end_loses_nothing() {
    run(async {
        for round in 0..60_u32 {
            let started = start("exit 9").await;
            let meet = Instant::now() + Duration::from_micros(u64::from(round) * 50);
            while Instant::now() < meet {
                tokio::task::yield_now().await;
            }
            started.tree.terminate(SHORT);
            let end = started.tree.ended().await;
            let exit = end.leader.unwrap();
            assert!(
                exit == LeaderExit::Code(9) || signal(exit) == "signal: SIGTERM",
                "{exit}"
            );
            assert_empty(&end, started.tree.pid());
        }
    });
}

#[test]
fn c359_after_the_end_termination_is_without_effect() {
    run(async {
        let started = start("exit 4").await;
        let end = started.tree.ended().await;
        started.tree.terminate(Duration::ZERO);
        assert_eq!(started.tree.ended().await, end);
        assert_eq!(started.tree.members(), []);
    });
}
