//! Each attack on a guard again and again.

use std::time::Duration;

use dsh_subprocess::{Cgroups, LeaderExit, Proof};
use dsh_testkit::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Marked, launcher, launcher_with, run};

const TIMES: u32 = 10;
const SUPERVISOR: &str = "read -r _ _ _ supervisor _ < /proc/$PPID/stat";

#[test]
fn a_killed_guard_leaves_nobody() {
    run(async {
        let launcher = launcher();
        for _ in 0..TIMES {
            let script = "(setsid sleep 60 &); (trap '' TERM; sleep 60) & kill -9 $PPID; sleep 60";
            let end = Marked::start(&launcher, script)
                .await
                .assert_ends(Proof::Supervisor)
                .await;
            assert_eq!(end.leader, Some(LeaderExit::GuardLost));
        }
    });
}

#[test]
fn a_stopped_guard_and_a_stopped_supervisor_leave_nobody() {
    run(async {
        let launcher = launcher();
        for round in 0..TIMES {
            let whom = ["$PPID", "$supervisor $PPID", "$PPID $supervisor"][round as usize % 3];
            let script = format!(
                "{SUPERVISOR}; trap '' TERM; (setsid sleep 60 &); kill -STOP {whom}; echo ready; while :; do sleep 60; done"
            );
            let mut marked = Marked::start(&launcher, &script).await;
            assert_eq!(marked.line().await, "ready");
            marked.started.tree.terminate(Duration::from_millis(20));
            marked.assert_ends(Proof::Guard).await;
        }
    });
}

#[test]
fn a_guard_that_is_stopped_without_end_leaves_nobody() {
    run(async {
        let launcher = launcher();
        for _ in 0..TIMES {
            let script = "trap '' TERM; (setsid sleep 60 &); echo ready; while :; do kill -STOP $PPID; done";
            let mut marked = Marked::start(&launcher, script).await;
            assert_eq!(marked.line().await, "ready");
            marked.started.tree.terminate(Duration::from_millis(20));
            // The guard may win, or its supervisor gives up on it.
            let end = marked.started.tree.ended().await;
            assert!(end.proof >= Proof::Guard && end.survivors.is_empty(), "{end:?}");
            assert_eq!(marked.living(), Vec::<u32>::new());
        }
    });
}

#[test]
fn guard_and_supervisor_killed_at_once_are_told_and_replaced() {
    run(async {
        let launcher = launcher_with(Cgroups::Off);
        for _ in 0..TIMES {
            let script =
                format!("{SUPERVISOR}; kill -STOP $supervisor; kill -9 $PPID $supervisor; exec sleep 20");
            let marked = Marked::start(&launcher, &script).await;
            let end = marked.started.tree.ended().await;
            assert_eq!(
                (end.leader, end.proof),
                (Some(LeaderExit::GuardLost), Proof::NotProven)
            );
            // Nobody else will end it.
            eventually("no survivor", || {
                let living = marked.living();
                for pid in &living {
                    let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
                }
                living.is_empty()
            })
            .await;
        }
    });
}
