//! Commands that go for their guard, and for its supervisor.

use std::time::{Duration, Instant};

use dsh_subprocess::{Cgroups, LeaderExit, Proof};
use dsh_testkit::eventually;
use dsh_testkit::process::is_gone;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{
    Marked, NEVER, SHORT, bash, bash_in, launcher, launcher_with, parent, run, start, state,
};

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

#[test]
fn a_killed_guard_costs_its_own_tree_and_is_told() {
    run(async {
        let launcher = launcher();
        let other = Marked::start(&launcher, "sleep 60").await;
        let marked = Marked::start(
            &launcher,
            "setsid sleep 60 & (trap '' TERM; sleep 60) & kill -9 $PPID; sleep 60",
        )
        .await;
        let end = marked.assert_ends(Proof::Supervisor).await;
        assert_eq!(end.leader, Some(LeaderExit::GuardLost));
        assert_eq!(end.leader.unwrap().to_string(), "guard lost");
        assert_eq!(marked.started.tree.leader_exit().await, LeaderExit::GuardLost);
        assert!(other.started.tree.leader_exited().is_none(), "only its own tree");
        // And the next command finds a guard.
        assert_eq!(
            start(&launcher, "exit 4").await.tree.leader_exit().await,
            LeaderExit::Code(4)
        );
        other.started.tree.terminate(NEVER);
        other.assert_ends(Proof::Guard).await;
    });
}

#[test]
fn a_guard_that_is_killed_first_of_all_is_told_as_lost() {
    run(async {
        let launcher = launcher();
        for _ in 0..20 {
            let marked = Marked::start(&launcher, "kill -9 $PPID; sleep 60").await;
            let end = marked.assert_ends(Proof::Supervisor).await;
            assert_eq!(end.leader, Some(LeaderExit::GuardLost));
        }
    });
}

#[test]
fn an_exit_that_was_seen_before_the_guard_was_lost_stays_true() {
    run(async {
        let launcher = launcher();
        let script = "g=$PPID; (trap '' TERM; until [ -e /proc/$$/nothing ] || ! kill -0 $$; do sleep 0.01; done; \
                      sleep 0.1; kill -9 $g; sleep 60) >/dev/null 2>&1 & exit 6";
        let marked = Marked::start(&launcher, script).await;
        assert_eq!(marked.started.tree.leader_exit().await, LeaderExit::Code(6));
        let end = marked.assert_ends(Proof::Supervisor).await;
        assert_eq!(end.leader, Some(LeaderExit::Code(6)));
    });
}

#[test]
fn a_stopped_guard_goes_on() {
    run(async {
        let launcher = launcher();
        let mut marked = Marked::start(&launcher, "sleep 60 & kill -STOP $PPID; echo ready; wait").await;
        marked.line().await;
        marked.started.tree.terminate(NEVER);
        let end = marked.assert_ends(Proof::Guard).await;
        assert_eq!(end.leader.unwrap().to_string(), "signal: SIGTERM");
    });
}

#[test]
fn a_guard_that_is_stopped_without_end_does_not_stop_the_kill() {
    run(async {
        let launcher = launcher();
        let script = "trap '' TERM; echo ready; while :; do kill -STOP $PPID; done";
        let mut marked = Marked::start(&launcher, script).await;
        marked.line().await;
        marked.started.tree.terminate(SHORT);
        // The guard may win, or its supervisor gives up on it.
        let end = marked.started.tree.ended().await;
        assert!(end.proof >= Proof::Guard && end.survivors.is_empty(), "{end:?}");
        assert_eq!(marked.living(), Vec::<u32>::new());
    });
}

#[test]
fn a_stopped_supervisor_stops_neither_a_kill_nor_a_start() {
    run(async {
        let launcher = launcher();
        let marked = Marked::start(&launcher, "sleep 60 & wait").await;
        let guard = parent(marked.started.tree.pid());
        let supervisor = parent(guard);
        signal(supervisor, Signal::SIGSTOP);
        eventually("a stopped supervisor", || state(supervisor) == Some('T')).await;
        signal(guard, Signal::SIGSTOP);
        eventually("a stopped guard", || state(guard) == Some('T')).await;
        marked.started.tree.terminate(NEVER);
        marked.assert_ends(Proof::Guard).await;
        signal(supervisor, Signal::SIGSTOP);
        // More than stand ready.
        for _ in 0..12 {
            assert_eq!(
                start(&launcher, "exit 4").await.tree.leader_exit().await,
                LeaderExit::Code(4)
            );
        }
    });
}

#[test]
fn a_killed_supervisor_costs_no_tree_and_is_replaced() {
    run(async {
        let launcher = launcher();
        let marked = Marked::start(&launcher, "setsid sleep 60 & wait").await;
        let supervisor = parent(parent(marked.started.tree.pid()));
        signal(supervisor, Signal::SIGKILL);
        eventually("a reaped supervisor", || state(supervisor).is_none()).await;
        let next = start(&launcher, "exit 4").await.tree;
        assert_eq!(next.leader_exit().await, LeaderExit::Code(4));
        assert!(marked.started.tree.leader_exited().is_none());
        marked.started.tree.terminate(NEVER);
        marked.assert_ends(Proof::Guard).await;
    });
}

#[test]
fn guard_and_supervisor_killed_at_once_is_not_proven() {
    run(async {
        let launcher = launcher_with(Cgroups::Off);
        let script = "until [ -e go ]; do sleep 0.01; done; read -r _ _ _ supervisor _ < /proc/$PPID/stat; \
                      kill -STOP $supervisor; kill -9 $PPID $supervisor; exec sleep 20";
        let directory = tempfile::tempdir().unwrap();
        let marked = Marked::start_spec(&launcher, bash_in(directory.path(), script)).await;
        std::fs::write(directory.path().join("go"), "").unwrap();
        let end = marked.started.tree.ended().await;
        assert_eq!(
            (end.leader, end.proof),
            (Some(LeaderExit::GuardLost), Proof::NotProven)
        );
        let pid = marked.started.tree.pid();
        let named: Vec<u32> = end.survivors.iter().map(|member| member.pid).collect();
        assert_eq!(named, [pid], "who lives is named");
        // Nobody else will end it.
        eventually("no survivor", || {
            let living = marked.living();
            living.iter().for_each(|pid| signal(*pid, Signal::SIGKILL));
            living.is_empty()
        })
        .await;
    });
}

#[test]
fn a_guard_that_never_answers_is_worked_around() {
    run(async {
        let launcher = launcher();
        // Without its supervisor, nobody lets the guard go on but us, and it is stopped again at once.
        let script = "trap '' TERM; setsid sleep 60 & read -r _ _ _ supervisor _ < /proc/$PPID/stat; \
                      kill -9 $supervisor; echo ready; while :; do kill -STOP $PPID; done";
        let mut spec = bash(script);
        spec.kill_bound = Duration::from_millis(300);
        let mut marked = Marked::start_spec(&launcher, spec).await;
        marked.line().await;
        let begun = Instant::now();
        marked.started.tree.terminate(SHORT);
        let end = marked.started.tree.ended().await;
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert!(end.survivors.is_empty(), "{end:?}");
        assert!(matches!(end.proof, Proof::Guard | Proof::NotProven), "{end:?}");
        assert_eq!(marked.living(), Vec::<u32>::new());
        assert!(is_gone(marked.started.tree.pid()));
    });
}

#[test]
fn what_a_command_can_read_of_its_guards_tells_nothing() {
    run(async {
        let launcher = launcher();
        let mut spec = bash(
            "read -r _ _ _ supervisor _ < /proc/$PPID/stat; for pid in $PPID $supervisor; do \
             tr '\\0' ' ' < /proc/$pid/cmdline; echo; tr '\\0' '\\n' < /proc/$pid/environ | grep -v ^LD_LIBRARY_PATH= | wc -c; done; tr '\\0' ' ' < /proc/$$/cmdline; : plain text",
        );
        spec.env.push(("SECRET".into(), "hidden value".into()));
        let printed = crate::common::text(launcher.spawn(spec).await.unwrap().stdout).await;
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(
            lines[..4],
            ["dsh-guard-supervisor ", "0", "dsh-guard-supervisor ", "0"]
        );
        assert!(
            lines[4].starts_with("bash -c BASH_EXECUTION_STRING=$(</proc/"),
            "{printed}"
        );
        assert!(
            !printed.contains("plain text") && !printed.contains("hidden"),
            "{printed}"
        );
    });
}
