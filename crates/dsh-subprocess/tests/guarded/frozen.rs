//! Cgroups of commands that somebody has frozen: what a command with the right to write there can do.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dsh_subprocess::{Cgroups, LeaderExit, Proof, SpawnError, Spawned};
use dsh_testkit::eventually;

use crate::cgroup::{Freezer, cgroups, contained, homes};
use crate::common::{Marked, NEVER, bash, launcher_with, start, text};

fn freeze(cgroup: &Path) {
    fs::write(cgroup.join("cgroup.freeze"), "1").unwrap();
}

fn is_frozen(cgroup: &Path) -> bool {
    let events = fs::read_to_string(cgroup.join("cgroup.events")).unwrap_or_default();
    events.lines().any(|line| line == "frozen 1")
}

#[test]
fn frozen_cgroups_do_not_stop_the_next_start() {
    contained(async |launcher, base| {
        let mut home = None;
        // All of them together, and the one that was made ahead.
        for together in [true, false, true] {
            let Spawned { tree, stdout, .. } = start(&launcher, "grep ^0:: /proc/self/cgroup; exit 4").await;
            assert_eq!(tree.leader_exit().await, LeaderExit::Code(4));
            assert_eq!(tree.ended().await.proof, Proof::Guard);
            let own = text(stdout).await;
            let own = own.trim().rsplit('/').next().unwrap();
            let home = home.get_or_insert_with(|| homes(&base, std::process::id()).remove(0));
            eventually(
                "its own gone, and another one",
                || matches!(&cgroups(home)[..], [next] if !next.ends_with(own)),
            )
            .await;
            let frozen = if together {
                home.clone()
            } else {
                cgroups(home).remove(0)
            };
            freeze(&frozen);
        }
        assert_eq!(
            start(&launcher, "exit 4").await.tree.leader_exit().await,
            LeaderExit::Code(4)
        );
    });
}

#[test]
fn frozen_commands_get_their_term_and_can_act_on_it() {
    contained(async |launcher, base| {
        let script = "trap 'echo term; exit 4' TERM; setsid sleep 60 & echo ready; wait";
        let mut marked = Marked::start(&launcher, script).await;
        marked.line().await;
        let home = homes(&base, std::process::id()).remove(0);
        freeze(&home);
        eventually("frozen commands", || is_frozen(&home)).await;
        marked.started.tree.terminate(NEVER);
        assert_eq!(marked.line().await, "term");
        let end = marked.assert_ends(Proof::Guard).await;
        assert_eq!(end.leader, Some(LeaderExit::Code(4)));
    });
}

#[test]
fn a_start_in_a_place_that_stays_frozen_is_refused_and_leaves_nobody() {
    contained(async |_, base| {
        let within = Freezer(base.join(format!("test-frozen-base-{}", std::process::id())));
        fs::create_dir(&within.0).unwrap();
        let launcher = launcher_with(Cgroups::Within(within.0.clone()));
        // Above what belongs to commands: whoever froze that may have meant it.
        within.write("cgroup.freeze", "1").unwrap();
        let error = launcher.spawn(bash("exit 0")).await.unwrap_err();
        let SpawnError::Frozen { cgroup } = &error else {
            panic!("{error}");
        };
        assert!(
            cgroup.starts_with(&within.0) && error.to_string().contains("which is frozen"),
            "{error}"
        );
        eventually("nobody in it", || {
            fs::read_to_string(within.0.join("cgroup.events"))
                .is_ok_and(|events| events.contains("populated 0"))
        })
        .await;
        within.write("cgroup.freeze", "0").unwrap();
        let tree = start(&launcher, "exit 4").await.tree;
        assert_eq!(tree.leader_exit().await, LeaderExit::Code(4));
        assert_eq!(tree.ended().await.proof, Proof::Guard);
        drop((tree, launcher));
        eventually("an empty place", || fs::remove_dir(&within.0).is_ok()).await;
    });
}

#[test]
fn the_end_of_the_launcher_thaws_nothing_and_leaves_nobody() {
    contained(async |launcher, base| {
        let mut marked =
            Marked::start(&launcher, "trap '' TERM; setsid sleep 60 & echo ready; sleep 60").await;
        marked.line().await;
        let home = homes(&base, std::process::id()).remove(0);
        freeze(&home);
        eventually("frozen commands", || is_frozen(&home)).await;
        marked.started.tree.terminate(Duration::ZERO);
        marked.assert_ends(Proof::Guard).await;
        drop((marked, launcher));
        eventually("no cgroup", || !home.exists()).await;
    });
}
