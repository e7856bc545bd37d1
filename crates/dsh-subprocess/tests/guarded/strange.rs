//! Members that a shell cannot make.

use dsh_subprocess::{LeaderExit, ProcessSpec, Proof};
use dsh_testkit::eventually;

use crate::common::{Marked, NEVER, PATH, bash, launcher, run, state};
use crate::trees;

/// A tree whose leader is the program that makes them, if there is what runs it.
async fn strange(test: &str, kind: &str) -> Option<Marked> {
    let program = Some(trees::strange(test)).filter(|program| !program.is_empty())?;
    let mut spec = ProcessSpec {
        bash_command: None,
        args: vec!["-c".into(), program.into(), kind.into()],
        ..bash("")
    };
    spec.program = "python3".into();
    spec.env = vec![("PATH".into(), PATH.into())];
    Some(Marked::start_spec(&launcher(), spec).await)
}

async fn members(marked: &Marked, count: usize) {
    eventually("all members", || marked.started.tree.members().len() == count).await;
}

#[test]
fn a_sibling_of_the_leader_is_a_member() {
    run(async {
        let Some(marked) = strange("a_sibling_of_the_leader_is_a_member", "sibling").await else {
            return;
        };
        assert_eq!(marked.started.tree.leader_exit().await, LeaderExit::Code(0));
        members(&marked, 1).await;
        marked.started.tree.terminate(NEVER);
        marked.assert_ends(Proof::Guard).await;
    });
}

#[test]
fn children_of_threads_are_ended() {
    run(async {
        let Some(marked) = strange("children_of_threads_are_ended", "threads").await else {
            return;
        };
        members(&marked, 3).await;
        marked.started.tree.terminate(NEVER);
        marked.assert_ends(Proof::Guard).await;
    });
}

#[test]
fn what_subreapers_within_the_tree_adopted_is_ended() {
    run(async {
        let Some(marked) = strange("what_subreapers_within_the_tree_adopted_is_ended", "reaper").await else {
            return;
        };
        members(&marked, 7).await;
        marked.started.tree.terminate(NEVER);
        marked.assert_ends(Proof::Guard).await;
    });
}

#[test]
fn a_leader_whose_first_thread_is_over_lives() {
    run(async {
        let Some(marked) = strange("a_leader_whose_first_thread_is_over_lives", "headless").await else {
            return;
        };
        let tree = &marked.started.tree;
        eventually("what looks like a zombie", || state(tree.pid()) == Some('Z')).await;
        assert_eq!(marked.living(), [tree.pid()]);
        assert_eq!(tree.leader_exited(), None);
        tree.terminate(NEVER);
        let end = marked.assert_ends(Proof::Guard).await;
        assert_eq!(end.leader.unwrap().to_string(), "signal: SIGTERM");
    });
}
