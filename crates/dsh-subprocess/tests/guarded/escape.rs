//! Members that leave the group, the session, or their parent, and members that resist.

use std::time::Instant;

use dsh_subprocess::{LeaderExit, Proof};
use dsh_testkit::eventually;

use crate::common::{Marked, NEVER, SHORT, alone, launcher, run, state};

/// Starts `command`, waits for its word and for `members` besides the shell, ends it, and expects nothing left.
async fn ends(command: &str, members: usize, grace: std::time::Duration) -> LeaderExit {
    let launcher = launcher();
    let mut marked = Marked::start(&launcher, &format!("{command}\necho ready; wait")).await;
    assert_eq!(marked.line().await, "ready");
    eventually("all members", || marked.started.tree.members().len() >= members).await;
    marked.started.tree.terminate(grace);
    marked.assert_ends(Proof::Guard).await.leader.unwrap()
}

#[test]
fn plain_children_end_by_term() {
    run(async {
        let exit = ends("sleep 60 & sleep 60 &", 2, NEVER).await;
        assert_eq!(exit.to_string(), "signal: SIGTERM");
    });
}

#[test]
fn nohup_does_not_leave_the_tree() {
    run(async {
        ends("nohup sleep 60 >/dev/null 2>&1 &", 1, NEVER).await;
    });
}

#[test]
fn setsid_does_not_leave_the_tree() {
    run(async {
        ends("setsid sleep 60 >/dev/null 2>&1 &", 1, NEVER).await;
    });
}

#[test]
fn a_double_fork_does_not_leave_the_tree() {
    run(async {
        let daemon = "(setsid bash -c 'cd /; sleep 60 & disown' >/dev/null 2>&1 </dev/null &)";
        ends(daemon, 1, NEVER).await;
    });
}

#[test]
fn job_control_does_not_leave_the_tree() {
    run(async {
        ends("set -m; sleep 60 & sleep 60 & set +m", 2, NEVER).await;
    });
}

#[test]
fn an_escapee_that_outlived_the_shell_keeps_the_tree_alive() {
    run(async {
        let launcher = launcher();
        let marked = Marked::start(&launcher, "(setsid sleep 60 >/dev/null 2>&1 &); exit 3").await;
        assert_eq!(marked.started.tree.leader_exit().await, LeaderExit::Code(3));
        let tree = &marked.started.tree;
        eventually("the escapee to be named", || {
            let members = tree.members();
            members.len() == 1 && members[0].command == "sleep 60"
        })
        .await;
        marked.started.tree.terminate(NEVER);
        assert_eq!(
            marked.assert_ends(Proof::Guard).await.leader,
            Some(LeaderExit::Code(3))
        );
    });
}

#[test]
fn a_member_that_ignores_term_is_killed_after_the_grace() {
    run(async {
        let begun = Instant::now();
        let escapee =
            "setsid bash -c 'trap \"\" TERM; while :; do sleep 60; done' >/dev/null 2>&1 </dev/null &";
        ends(escapee, 2, SHORT).await;
        assert!(begun.elapsed() >= SHORT);
    });
}

#[test]
fn stopped_members_act_on_term() {
    run(async {
        let launcher = launcher();
        let script =
            "setsid bash -c 'kill -STOP $$' & a=$!; sleep 60 & kill -STOP $!; echo $a $!; kill -STOP $$";
        let mut marked = Marked::start(&launcher, script).await;
        let line = marked.line().await;
        let leader = marked.started.tree.pid();
        let pids: Vec<u32> = line
            .split(' ')
            .map(|pid| pid.parse().unwrap())
            .chain([leader])
            .collect();
        eventually("all to be stopped", || {
            pids.iter().all(|pid| state(*pid) == Some('T'))
        })
        .await;
        marked.started.tree.terminate(NEVER);
        let end = marked.assert_ends(Proof::Guard).await;
        assert_eq!(end.leader.unwrap().to_string(), "signal: SIGTERM");
    });
}

#[test]
fn members_that_fork_during_the_kill_are_ended() {
    run(async {
        let churn = "churn() { trap '' TERM; while :; do (setsid sleep 0.05 &) ; sleep 0.01; done; }; \
                     churn & (set -m; churn &) ; setsid bash -c \"$(declare -f churn); churn\" &";
        ends(churn, 3, SHORT).await;
    });
}

#[test]
fn two_hundred_members_are_ended() {
    run(async {
        let many = "for i in {1..100}; do sleep 60 & done; for i in {1..50}; do setsid sleep 60 & done; \
                    set -m; for i in {1..50}; do sleep 60 & done; set +m";
        ends(many, 200, NEVER).await;
    });
}

#[test]
fn two_hundred_members_that_ignore_term_are_ended() {
    run(async {
        let many = "trap '' TERM; for i in {1..120}; do sleep 60 & done; for i in {1..80}; do setsid sleep 60 & done";
        let exit = ends(many, 200, SHORT).await;
        assert_eq!(exit.to_string(), "signal: SIGKILL");
    });
}

#[test]
fn more_escapees_than_a_guard_has_descriptors_get_their_term() {
    alone(
        "escape::more_escapees_than_a_guard_has_descriptors_get_their_term",
        "ulimit -Sn 64",
        || {
            run(async {
                // With a grace without end, whoever is not told lives on.
                ends(
                    "for i in {1..200}; do setsid sleep 60 & done; ulimit -n >&2",
                    200,
                    NEVER,
                )
                .await;
            });
        },
    );
}

#[test]
fn a_deep_chain_is_ended() {
    run(async {
        let link = "link() { if [ $1 = 0 ]; then exec sleep 60; fi; (link $(($1 - 1))); :; }; link 60 &";
        ends(link, 60, NEVER).await;
    });
}

#[test]
fn term_comes_once_to_each_member_wherever_it_is() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("terms");
        let file = file.display();
        let inner = format!(
            "trap \"echo \\$\\$ >> {file}\" TERM; echo up >> {file}.up; while :; do sleep 0.02; done"
        );
        let command = format!(
            "echo '{inner}' > {file}.sh; bash {file}.sh & setsid bash {file}.sh & (setsid bash {file}.sh &); \
             set -m; bash {file}.sh & set +m; trap 'echo leader >> {file}' TERM; echo ready; while :; do sleep 0.02; done"
        );
        let launcher = launcher();
        let mut marked = Marked::start(&launcher, &command).await;
        assert_eq!(marked.line().await, "ready");
        let lines = |suffix: &str| {
            let text = std::fs::read_to_string(format!("{file}{suffix}")).unwrap_or_default();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        eventually("four traps", || lines(".up").len() == 4).await;
        marked.started.tree.terminate(NEVER);
        eventually("five TERMs", || lines("").len() >= 5).await;
        // What comes later only brings the KILL forward.
        marked.started.tree.terminate(SHORT);
        marked.assert_ends(Proof::Guard).await;
        let mut terms = lines("");
        terms.sort();
        let all = terms.len();
        terms.dedup();
        assert_eq!((all, terms.len()), (5, 5), "{terms:?}");
    });
}
