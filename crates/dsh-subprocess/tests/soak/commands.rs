//! Thousands of commands: nothing piles up, here or in the supervisor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dsh_subprocess::{Launcher, LeaderExit, Proof};
use dsh_testkit::eventually;
use dsh_testkit::process::{open_fds, zombie_children};
use tokio::task::JoinSet;

use crate::common::{alone, children, descriptors, launcher, parent, run_within, start};

const COMMANDS: u32 = 5_000;
const AT_ONCE: usize = 8;
/// How many guards are kept ready.
const READY: usize = 8;
/// In KiB: what allocators keep of a peak.
const NOISE: u64 = 1024;

/// The memory that a process has to itself, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// One of every kind.
async fn run_one(launcher: &Launcher, number: u32) {
    let command = match number % 8 {
        0 | 1 => "exec true",
        2 => "exit 7",
        3 => "echo much; sleep 0.001; exit 7",
        4 => "(setsid sleep 0.01 >/dev/null 2>&1 &); exit 7",
        5 => "(setsid sleep 60 >/dev/null 2>&1 &); exit 7",
        6 => "trap '' TERM; while :; do sleep 60; done",
        _ => "kill -9 $PPID; sleep 60",
    };
    // Without its guard for one in eighty: each takes its supervisor's time.
    let command = if number % 8 == 7 && number % 10 != 7 {
        "kill -SEGV $$"
    } else {
        command
    };
    // Its pipes stay open.
    let started = start(launcher, command).await;
    let tree = &started.tree;
    match number % 8 {
        5 => _ = tree.leader_exit().await,
        6 => {}
        _ => {
            let end = tree.ended().await;
            assert!(
                end.proof >= Proof::Guard && end.survivors.is_empty(),
                "{command}: {end:?}"
            );
            if command.ends_with("exit 7") {
                assert_eq!(end.leader, Some(LeaderExit::Code(7)), "{command}");
            }
            return;
        }
    }
    tree.terminate(Duration::from_millis(2));
    let end = tree.ended().await;
    assert_eq!(
        (end.proof, end.survivors.len()),
        (Proof::Guard, 0),
        "{command}: {end:?}"
    );
}

async fn run_until(launcher: &Launcher, last: u32, next: &Arc<AtomicU32>) {
    let mut all = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (launcher, next) = (launcher.clone(), Arc::clone(next));
        all.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= last {
                    return;
                }
                run_one(&launcher, number).await;
            }
        });
    }
    all.join_all().await;
    next.store(last, Ordering::Relaxed);
}

#[test]
fn five_thousand_commands_leave_nothing() {
    alone("commands::five_thousand_commands_leave_nothing", "", || {
        run_within(Duration::from_secs(120), async {
            let launcher = launcher();
            let ours = std::process::id();
            let first = start(&launcher, "sleep 60").await.tree;
            let supervisor = parent(parent(first.pid()));
            first.terminate(Duration::ZERO);
            first.ended().await;
            drop(first);
            let next = Arc::new(AtomicU32::new(0));
            run_until(&launcher, COMMANDS / 5, &next).await;
            eventually("ready guards alone", || children(supervisor) == READY).await;
            let before = (open_fds().len(), descriptors(supervisor));
            let memory_before = (memory(ours), memory(supervisor));
            run_until(&launcher, COMMANDS, &next).await;
            eventually("ready guards alone", || children(supervisor) == READY).await;
            let after = || (open_fds().len(), descriptors(supervisor));
            println!("descriptors: {before:?}, {:?}", after());
            // How many of the ready guards were taken in, with two descriptors each, is different from time to time.
            eventually("no more descriptors than before", || {
                after().0 <= before.0 + 2 * READY && after().1 <= before.1
            })
            .await;
            eventually("no zombie", || {
                zombie_children().is_empty() && children(ours) == 1
            })
            .await;
            let memory_after = (memory(ours), memory(supervisor));
            println!("memory in KiB: {memory_before:?}, {memory_after:?}");
            assert!(
                memory_after.0 <= memory_before.0 + NOISE,
                "{memory_before:?} {memory_after:?}"
            );
            assert!(
                memory_after.1 <= memory_before.1 + NOISE / 8,
                "{memory_before:?} {memory_after:?}"
            );
        });
    });
}
