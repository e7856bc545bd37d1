//! Commands that take every further descriptor from those who guard them.

use std::time::Duration;

use dsh_subprocess::{Cgroups, Proof};

use crate::common::{Marked, SHORT, is_inside, launcher_with, line, parent, run};
use crate::killed::{Harness, marked, note};

/// Members of every kind, two of which do not listen, and then nobody who guards them can open anything.
fn blinding(who: &str) -> String {
    let deaf = "trap \"\" TERM; while :; do sleep 600; done";
    format!(
        "setsid bash -c '{deaf}' & (setsid bash -c '{deaf}' &); setsid sleep 600 & \
         for pid in {who}; do prlimit --pid $pid --nofile=0; done; echo blind; sleep 600"
    )
}

const GUARD: &str = "$PPID";
const BOTH: &str = "$PPID $(awk '{print $4}' /proc/$PPID/stat)";

#[test]
fn a_guard_that_can_open_nothing_ends_its_tree_all_the_same() {
    run(async {
        for who in [GUARD, BOTH] {
            let launcher = launcher_with(Cgroups::Off);
            let mut tree = Marked::start(&launcher, &blinding(who)).await;
            assert_eq!(tree.line().await, "blind");
            tree.started.tree.terminate(SHORT);
            tree.assert_ends(Proof::Guard).await;
        }
    });
}

#[test]
fn a_supervisor_that_can_open_nothing_ends_what_a_guard_left_behind() {
    run(async {
        let launcher = launcher_with(Cgroups::Off);
        let mut tree = Marked::start(
            &launcher,
            &blinding(BOTH).replace("echo blind; sleep 600", "echo blind; kill -9 $PPID; sleep 600"),
        )
        .await;
        assert_eq!(tree.line().await, "blind");
        tree.assert_ends(Proof::Supervisor).await;
    });
}

#[test]
fn a_program_that_is_killed_leaves_nothing_though_its_guards_can_open_nothing() {
    let name = "blind::a_program_that_is_killed_leaves_nothing_though_its_guards_can_open_nothing";
    if is_inside() {
        return run(async {
            let launcher = launcher_with(Cgroups::Off);
            let mut started = launcher.spawn(marked(&blinding(BOTH))).await.unwrap();
            assert_eq!(line(&mut started.stdout).await, "blind");
            note("supervisor", parent(parent(started.tree.pid())));
            std::future::pending::<()>().await;
        });
    }
    run(async {
        let harness = Harness::start(name);
        let supervisor = harness.noted("supervisor").await;
        harness.kill(&[supervisor], Duration::from_secs(10)).await;
    });
}
