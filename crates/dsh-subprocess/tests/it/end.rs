//! How the end of a tree is seen.

use std::time::{Duration, Instant};

use dsh_subprocess::{LeaderExit, Proof};
use dsh_testkit::eventually;
use dsh_testkit::process::{gone, is_gone, zombie_children};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{assert_empty, bash_in, line, pid_line, run, start, state};

#[test]
fn c307_exit_codes_are_kept() {
    run(async {
        for code in [0, 1, 42, 255] {
            let started = start(&format!("exit {code}")).await;
            assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(code));
            let end = started.tree.ended().await;
            assert_eq!(end.leader, Some(LeaderExit::Code(code)));
            assert_empty(&end, started.tree.pid());
        }
    });
}

#[test]
fn c370_signals_are_kept_by_name_real_time_ones_too() {
    run(async {
        let cases = [
            ("TERM", "SIGTERM"),
            ("KILL", "SIGKILL"),
            ("RTMIN", "SIGRTMIN"),
            ("RTMIN+3", "SIGRTMIN+3"),
        ];
        for (sent, told) in cases {
            let started = start(&format!("kill -s {sent} $$")).await;
            assert_eq!(
                started.tree.leader_exit().await.to_string(),
                format!("signal: {told}")
            );
        }
    });
}

#[test]
fn a_core_image_is_told() {
    run(async {
        let started = start("ulimit -c 0; kill -SEGV $$").await;
        let LeaderExit::Signal { signal, .. } = started.tree.leader_exit().await else {
            panic!("not by a signal")
        };
        assert_eq!(signal.number(), Signal::SIGSEGV as i32);
        for (core_dumped, told) in [
            (false, "signal: SIGSEGV"),
            (true, "signal: SIGSEGV (core dumped)"),
        ] {
            assert_eq!(LeaderExit::Signal { signal, core_dumped }.to_string(), told);
        }
    });
}

#[test]
fn a_member_that_outlives_the_leader_is_named_and_its_end_is_seen() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let script = "mkfifo gate; cat gate >/dev/null & echo $!; exit 3";
        let mut started = crate::common::spawn(bash_in(directory.path(), script))
            .await
            .unwrap();
        let tree = started.tree;
        let member = pid_line(&mut started.stdout).await;
        assert_eq!(tree.leader_exit().await, LeaderExit::Code(3));
        eventually("the member to be named by its command", || {
            let members = tree.members();
            members.len() == 1 && members[0].pid == member && members[0].command == "cat gate"
        })
        .await;
        assert_eq!(tree.leader_exited(), Some(LeaderExit::Code(3)));
        // While it lives the leader's number is taken: nobody can be given it and be mistaken for ours.
        assert_eq!(state(tree.pid()), Some('Z'));
        assert!(zombie_children().contains(&tree.pid()));

        tokio::task::spawn_blocking(move || std::fs::write(directory.path().join("gate"), ""))
            .await
            .unwrap()
            .unwrap();
        let end = tree.ended().await;
        assert_eq!(end.leader, Some(LeaderExit::Code(3)));
        assert_empty(&end, tree.pid());
        assert!(is_gone(member));
        assert_eq!(state(tree.pid()), None, "the leader is reaped");
        assert_eq!(tree.members(), []);
    });
}

#[test]
fn members_are_named_while_the_leader_lives_and_it_is_not_one_of_them() {
    run(async {
        let mut started = start("sleep 60 & sleep 60 & echo ready; wait").await;
        line(&mut started.stdout).await;
        let pid = started.tree.pid();
        eventually("two sleepers", || {
            let members = started.tree.members();
            members
                .iter()
                .filter(|member| member.command == "sleep 60")
                .count()
                == 2
                && members.iter().all(|member| member.pid != pid)
        })
        .await;
    });
}

#[test]
fn c318_a_group_of_zombies_is_empty() {
    run(async {
        // One process starts a child in the group, leaves the group itself, and never reaps the child.
        let mut started =
            start("(bash -c 'sleep 0.1 & echo $!; exec setsid sleep 60' & echo $!); exit 0").await;
        let mut pids = [
            pid_line(&mut started.stdout).await,
            pid_line(&mut started.stdout).await,
        ];
        let end = started.tree.ended().await;
        assert_eq!(end.proof, Proof::Group);
        pids.sort_by_key(|pid| is_gone(*pid));
        let [parent, child] = pids;
        assert_eq!((state(parent), state(child)), (Some('S'), Some('Z')));
        kill(Pid::from_raw(parent.cast_signed()), Signal::SIGKILL).unwrap();
        gone(parent).await;
    });
}

#[test]
fn a_process_that_leaves_the_group_does_not_hold_the_tree() {
    run(async {
        let mut started = start("setsid sleep 60 & echo $!; exit 0").await;
        let escaped = pid_line(&mut started.stdout).await;
        let begun = Instant::now();
        assert_eq!(started.tree.ended().await.proof, Proof::Group);
        assert!(begun.elapsed() < Duration::from_secs(10));
        kill(Pid::from_raw(escaped.cast_signed()), Signal::SIGKILL).unwrap();
        gone(escaped).await;
    });
}
