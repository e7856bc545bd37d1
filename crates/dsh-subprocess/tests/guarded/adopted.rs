//! A program that is given orphans, as the first process of a container is.

use dsh_subprocess::{LeaderExit, Proof};
use dsh_testkit::eventually;
use nix::sys::signal::Signal;
use rustix::process::{getpid, set_child_subreaper};

use crate::cgroup::signal;
use crate::common::{NEVER, alone, children, launcher, parent, run, start, state};

#[test]
fn guards_that_lost_their_supervisor_leave_no_zombies() {
    alone(
        "adopted::guards_that_lost_their_supervisor_leave_no_zombies",
        "",
        || {
            set_child_subreaper(Some(getpid())).unwrap();
            run(async {
                let launcher = launcher();
                let first = start(&launcher, "setsid sleep 60 & wait").await.tree;
                let supervisor = parent(parent(first.pid()));
                eventually("ready guards", || children(supervisor) > 8).await;
                signal(supervisor, Signal::SIGKILL);
                eventually("a reaped supervisor", || state(supervisor).is_none()).await;
                let next = start(&launcher, "exit 4").await.tree;
                assert_eq!(next.leader_exit().await, LeaderExit::Code(4));
                first.terminate(NEVER);
                assert_eq!(first.ended().await.proof, Proof::Guard);
                drop((first, next, launcher));
                eventually("no child, not even a zombie", || {
                    children(std::process::id()) == 0
                })
                .await;
            });
        },
    );
}
