//! What concerns the whole program: each of these runs the test program again, for that one test, from a
//! shell that prepares what is inherited.

use std::process::Command;
use std::time::Duration;

use dsh_subprocess::{LeaderExit, SpawnError, guard_entry};
use dsh_testkit::eventually;
use dsh_testkit::process::{open_fds, zombie_children};
use nix::sys::signal::{SigSet, Signal};

use crate::common::{bash, line, run, spawn, start, text};

const INSIDE: &str = "DSH_TEST_INSIDE";

/// Runs `body` in a program of its own, started by `sh` after `prepare`.
fn alone(test: &str, prepare: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let script = format!("{prepare}\nexec $WRAP \"$0\" --exact \"$1\" --nocapture --test-threads=1");
    let program = std::env::current_exe().unwrap();
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(script)
        .arg(program)
        .arg(format!("alone::{test}"))
        .env(INSIDE, "1");
    let output = shell.output().unwrap();
    let shown = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
}

fn signals(status: &str, field: &str) -> u64 {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .unwrap();
    u64::from_str_radix(value.trim(), 16).unwrap()
}

fn own_status() -> String {
    std::fs::read_to_string("/proc/thread-self/status").unwrap()
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as u32 - 1)
}

#[test]
fn nothing_of_ours_reaches_the_process() {
    alone(
        "nothing_of_ours_reaches_the_process",
        "trap '' HUP INT PIPE USR2; exec 7</etc/passwd 9</etc/passwd",
        || {
            let mut blocked = SigSet::empty();
            blocked.add(Signal::SIGUSR1);
            blocked.thread_block().unwrap();
            let ours = own_status();
            assert_ne!(signals(&ours, "SigIgn") & bit(Signal::SIGHUP), 0);
            assert_ne!(signals(&ours, "SigBlk") & bit(Signal::SIGUSR1), 0);
            assert!(open_fds().iter().any(|(fd, _)| *fd == 7));
            run(async {
                let status = text(start("exec cat /proc/self/status").await.stdout).await;
                for field in ["SigIgn", "SigBlk", "SigPnd"] {
                    assert_eq!(signals(&status, field), 0, "{field} in {status}");
                }
                // The listing itself has a descriptor open, which is the next free one.
                let listed = text(start("exec ls /proc/self/fd").await.stdout).await;
                assert_eq!(listed, "0\n1\n2\n3\n");
                let targets = text(
                    start("exec readlink /proc/self/fd/1 /proc/self/fd/3")
                        .await
                        .stdout,
                )
                .await;
                assert!(
                    targets.starts_with("pipe:") && targets.lines().count() == 1,
                    "{targets}"
                );
            });
        },
    );
}

#[test]
fn guard_entry_undoes_what_was_inherited() {
    alone(
        "guard_entry_undoes_what_was_inherited",
        "trap '' HUP INT PIPE; exec 7</etc/passwd; WRAP='env --ignore-signal=CHLD'",
        || {
            SigSet::all().thread_block().unwrap();
            run(async {
                assert!(matches!(
                    spawn(bash("true")).await.unwrap_err(),
                    SpawnError::ExitsIgnored
                ));
            });
            guard_entry();
            let status = own_status();
            // Not counted: two numbers that the C library lets nobody touch.
            assert_eq!(signals(&status, "SigIgn") & !(0b11 << 31), bit(Signal::SIGPIPE));
            assert_eq!(signals(&status, "SigBlk"), 0);
            let info = std::fs::read_to_string("/proc/self/fdinfo/7").unwrap();
            let flags = info
                .lines()
                .find_map(|line| line.strip_prefix("flags:"))
                .unwrap()
                .trim();
            assert_ne!(
                u32::from_str_radix(flags, 8).unwrap() & libc::O_CLOEXEC.cast_unsigned(),
                0,
                "{info}"
            );
            run(async {
                assert_eq!(
                    start("exit 2").await.tree.leader_exit().await,
                    LeaderExit::Code(2)
                );
            });
        },
    );
}

#[test]
fn a_want_of_descriptors_is_told_as_such_and_passes() {
    alone(
        "a_want_of_descriptors_is_told_as_such_and_passes",
        "ulimit -n 40",
        || {
            run(async {
                let mut trees = Vec::new();
                let error = loop {
                    match spawn(bash("exec sleep 60")).await {
                        Ok(started) => trees.push(started),
                        Err(error) => break error,
                    }
                };
                assert!(!trees.is_empty());
                assert!(matches!(error, SpawnError::Resources { .. }), "{error:?}");
                assert_eq!(error.errno(), Some(libc::EMFILE));
                assert!(error.to_string().contains("EMFILE"), "{error}");
                // Trees that run are watched on, and those that end make room.
                for started in trees.drain(..) {
                    started.tree.terminate(Duration::from_secs(30));
                    assert_eq!(
                        started.tree.ended().await.leader.unwrap().to_string(),
                        "signal: SIGTERM"
                    );
                }
                assert_eq!(
                    start("exit 1").await.tree.leader_exit().await,
                    LeaderExit::Code(1)
                );
                eventually("no zombie", || zombie_children().is_empty()).await;
            });
        },
    );
}

#[test]
fn closed_standard_descriptors_do_not_confuse_those_of_the_process() {
    alone(
        "closed_standard_descriptors_do_not_confuse_those_of_the_process",
        "",
        || {
            run(async {
                // The runtime library reopens closed descriptors at start, so they are closed here.
                start("true").await.tree.ended().await;
                assert_eq!(nix::unistd::close(0), Ok(()));
                let mut started = start("echo out; echo err >&2; readlink /proc/self/fd/0").await;
                assert_eq!(line(&mut started.stdout).await, "out");
                assert_eq!(line(&mut started.stdout).await, "/dev/null");
                assert_eq!(line(&mut started.stderr).await, "err");
            });
        },
    );
}

#[test]
fn five_hundred_starts_leave_nothing() {
    alone("five_hundred_starts_leave_nothing", "", || {
        run(async {
            start("true").await.tree.ended().await;
            eventually("no zombie", || zombie_children().is_empty()).await;
            let before = open_fds().len();
            for round in 0..500 {
                let started = start("exit 0").await;
                if round % 2 == 0 {
                    started.tree.ended().await;
                }
            }
            eventually("no zombie", || zombie_children().is_empty()).await;
            eventually("the same descriptors as before", || open_fds().len() == before).await;
        });
    });
}

#[test]
fn a_living_member_costs_few_wake_ups() {
    alone("a_living_member_costs_few_wake_ups", "", || {
        run(async {
            let started = start("sleep 2 & exit 0").await;
            started.tree.leader_exit().await;
            let before = keeper_wake_ups();
            started.tree.ended().await;
            let wake_ups = keeper_wake_ups() - before;
            assert!(wake_ups < 25, "{wake_ups} in two seconds");
        });
    });
}

fn keeper_wake_ups() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let status = threads.flatten().find_map(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        status.contains("Name:\tdsh-keeper").then_some(status)
    });
    let status = status.expect("the watching thread runs");
    let switches = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .unwrap();
    switches.trim().parse().unwrap()
}
