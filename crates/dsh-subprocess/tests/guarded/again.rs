//! A guard whose command has ended serves another one, and that one has nothing to do with the first.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use dsh_subprocess::{Launcher, LeaderExit, ProcessSpec, Proof, Spawned};

use crate::common::{NEVER, bash, launcher, run, start, text};

/// A command of its own for each answer: its guard.
async fn guard_of(launcher: &Launcher, before: &str) -> u32 {
    let Spawned { tree, stdout, .. } = start(launcher, &format!("{before}\necho $PPID")).await;
    assert_eq!(tree.ended().await.proof, Proof::Guard);
    text(stdout).await.trim().parse().unwrap()
}

/// Two commands in a row under one guard. A command that a busy machine makes slow has its guard replaced, so it is
/// tried again.
async fn same_twice(launcher: &Launcher, first: &str) -> Option<u32> {
    for _ in 0..50 {
        let guard = guard_of(launcher, first).await;
        if guard_of(launcher, "").await == guard {
            return Some(guard);
        }
    }
    None
}

#[test]
fn the_next_command_has_the_guard_of_the_last_one() {
    run(async {
        let launcher = launcher();
        assert!(same_twice(&launcher, "").await.is_some());
    });
}

#[test]
fn a_guard_that_was_sent_a_signal_serves_nobody_else() {
    run(async {
        let launcher = launcher();
        for signal in ["TERM", "CONT", "USR2", "RTMIN", "STOP"] {
            assert_eq!(
                same_twice(&launcher, &format!("kill -{signal} $PPID")).await,
                None,
                "{signal}"
            );
        }
    });
}

#[test]
fn a_guard_that_was_given_other_limits_serves_nobody_else() {
    run(async {
        let launcher = launcher();
        for change in [
            "prlimit --pid $PPID --nofile=64:64",
            "renice -n 5 -p $PPID >/dev/null",
            "echo 12345678 > /proc/$PPID/timerslack_ns",
            "echo 7 > /proc/$PPID/coredump_filter",
        ] {
            assert_eq!(same_twice(&launcher, change).await, None, "{change}");
        }
    });
}

#[test]
fn a_termination_that_comes_late_does_not_reach_the_next_command() {
    run(async {
        let launcher = launcher();
        for round in 0..300 {
            let first = start(&launcher, "exit 0").await.tree;
            match round % 3 {
                0 => drop(first.leader_exit().await),
                1 => drop(first.ended().await),
                _ => tokio::time::sleep(Duration::from_micros(round * 10)).await, // sleep: any moment
            }
            let late = std::thread::spawn(move || {
                first.terminate(NEVER);
                first.terminate(Duration::ZERO);
                drop(first);
            });
            let next = start(&launcher, "exit 7").await.tree;
            assert_eq!(next.leader_exit().await, LeaderExit::Code(7));
            assert_eq!(next.ended().await.proof, Proof::Guard);
            late.join().unwrap();
        }
    });
}

#[test]
fn a_tree_that_is_over_shows_nobody_of_the_next_one() {
    run(async {
        let launcher = launcher();
        let first = start(&launcher, "exit 0").await.tree;
        first.ended().await;
        let next = start(&launcher, "sleep 60 & wait").await.tree;
        dsh_testkit::eventually("a member", || next.members().len() == 1).await;
        assert_eq!(first.members(), []);
        first.terminate(Duration::ZERO);
        assert_eq!(next.members().len(), 1);
    });
}

#[test]
fn nothing_of_a_command_stays_in_the_memory_of_its_guard() {
    run(async {
        // The second order is too long for a message: it comes in a file.
        for padding in ["", &"x".repeat(100_000)] {
            let secret = format!("secret-{}-of-the-first", std::process::id());
            let mut spec = bash("read -r; echo $PPID");
            spec.stdin = dsh_subprocess::Stdin::Data(b"\n".to_vec());
            spec.env.push(("PADDING".into(), padding.into()));
            spec.env.push(("SECRET".into(), secret.clone().into()));
            let memory = memory_of_its_guard(&launcher(), &spec).await;
            assert!(memory.len() > 10_000, "its memory can be read");
            let found = memory
                .windows(secret.len())
                .any(|bytes| bytes == secret.as_bytes());
            assert!(!found, "the environment of a command that is over");
        }
    });
}

/// What a guard that waits again has in memory after a command. One that was replaced is gone, so it is tried again.
async fn memory_of_its_guard(launcher: &Launcher, spec: &ProcessSpec) -> Vec<u8> {
    for _ in 0..50 {
        let Spawned { tree, stdout, .. } = launcher.spawn(spec.clone()).await.unwrap();
        tree.ended().await;
        let guard: u32 = text(stdout).await.trim().parse().unwrap();
        if let Some(memory) = memory(guard) {
            return memory;
        }
    }
    panic!("no guard stays");
}

/// What a process may have written.
fn memory(pid: u32) -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        memory.read_exact_at(&mut bytes, start).ok()?;
        all.extend(bytes);
    }
    Some(all)
}

#[test]
fn a_guard_that_has_served_is_hardly_larger_than_a_new_one() {
    run(async {
        let launcher = launcher();
        let own = |guard: u32| {
            let maps = std::fs::read_to_string(format!("/proc/{guard}/smaps_rollup")).ok()?;
            let line = maps
                .lines()
                .find_map(|line| line.strip_prefix("Private_Dirty:"))?;
            line.split_whitespace().next()?.parse::<u32>().ok()
        };
        // A command that a busy machine makes slow has its guard replaced, so it is tried again.
        let mut sizes = Vec::new();
        for _ in 0..20 {
            let mut spec = bash("echo $PPID");
            let large = (0..24).map(|number| (format!("X{number}").into(), "x".repeat(4096).into()));
            spec.env.extend(large);
            let Spawned { tree, stdout, .. } = launcher.spawn(spec).await.unwrap();
            assert_eq!(tree.ended().await.proof, Proof::Guard);
            let guard: u32 = text(stdout).await.trim().parse().unwrap();
            // In kilobytes, and less than it was sent: nothing of that is kept. It says that it is done before it tidies up.
            let until = Instant::now() + Duration::from_secs(1);
            while let Some(size) = own(guard) {
                if size < 96 {
                    return;
                }
                if Instant::now() > until {
                    sizes.push(size);
                    break;
                }
                // sleep: between two looks at a fact that has a deadline.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        panic!("no guard stays, or they stay as large as {sizes:?}");
    });
}

/// Joins a session keyring of its own, and gives it to its parent.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_guard_that_was_given_a_keyring_serves_nobody_else() {
    run(async {
        let launcher = launcher();
        let script = |calls: &str| format!("exec perl -e '{calls} print getppid, qq(\\n)'");
        if same_twice(&launcher, &script("")).await.is_none() {
            return crate::cgroup::left_out("there is no perl, or it takes too long");
        }
        let given = script("syscall(250, 1, 0) > 0 && syscall(250, 18) == 0 || die;");
        assert_eq!(same_twice(&launcher, &given).await, None);
    });
}
