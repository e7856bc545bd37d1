//! Processes and memory that the system does not give, and gives again.
//!
//! Root is not bound by the limit of processes, so it becomes somebody else, whose processes are only those of a test.

use std::process::{Child, Command, Stdio};

use dsh_subprocess::{Cgroups, Launcher, LeaderExit, SpawnError};
use dsh_testkit::eventually;
use dsh_testkit::process::zombie_children;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

use crate::cgroup::left_out;
use crate::common::{NEVER, alone, bash, children, helper_after, is_inside, launcher, parent, run, start};

/// Nobody else has this number, so all its processes are those of the test.
const SOMEBODY_ELSE: &str = "nobody=$((100000 + $$)); exec setpriv --reuid $nobody --regid $nobody --clear-groups \
                             \"$0\" --exact \"$1\" --nocapture --test-threads=1";

/// Runs `body` in a program of its own as a user who is bound by limits.
fn as_somebody(test: &str, body: impl FnOnce()) {
    alone(test, if geteuid().is_root() { SOMEBODY_ELSE } else { "" }, body);
}

/// As [`as_somebody`], where the processes of that user can be counted.
fn as_nobody_else(test: &str, body: impl FnOnce()) {
    if is_inside() || geteuid().is_root() {
        as_somebody(test, body);
    } else {
        left_out("it takes root to become somebody without processes");
    }
}

/// Processes that are in the way.
struct Crowd(Vec<Child>);

impl Crowd {
    /// Sets a limit that leaves room for these and for `more`, for this program and whatever it starts from now on.
    async fn with_room_for(more: usize) -> Crowd {
        // The threads that starts need, which count as well.
        start(&Launcher::groups(), "true").await.tree.ended().await;
        let sleeper = || Command::new("sleep").arg("60").spawn().unwrap();
        let crowd = Crowd((0..30).map(|_| sleeper()).collect());
        let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
        let room = threads + crowd.0.len() + more;
        limit_processes(u64::try_from(room).unwrap());
        crowd
    }
}

impl Crowd {
    fn take_all_room(&mut self) {
        while let Ok(child) = Command::new("sleep").arg("60").spawn() {
            self.0.push(child);
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// By ourselves: while it holds, no other program can be started to change it.
fn limit_processes(current: u64) {
    let limit = Rlimit {
        current: Some(current),
        ..getrlimit(Resource::Nproc)
    };
    setrlimit(Resource::Nproc, limit).unwrap();
}

/// Changes the soft limit of a process. Whether it could: it may be gone.
fn prlimit(pid: u32, what: &str, value: &str) -> bool {
    let mut command = Command::new("prlimit");
    command.args(["--pid", &pid.to_string(), &format!("--{what}={value}:")]);
    command.stderr(Stdio::null()).status().unwrap().success()
}

async fn assert_works(launcher: &Launcher) {
    let tree = start(launcher, "exit 4").await.tree;
    assert_eq!(tree.leader_exit().await, LeaderExit::Code(4));
    tree.ended().await;
    eventually("no zombie", || zombie_children().is_empty()).await;
}

fn assert_is(error: &SpawnError, errno: i32) {
    assert!(matches!(error, SpawnError::Resources { .. }), "{error:?}");
    assert_eq!(error.errno(), Some(errno), "{error}");
}

#[test]
fn no_process_for_a_guard_is_told_and_passes() {
    as_nobody_else("shortage::no_process_for_a_guard_is_told_and_passes", || {
        run(async {
            let crowd = Crowd::with_room_for(1).await;
            let launcher = launcher();
            for _ in 0..2 {
                let error = launcher.spawn(bash("true")).await.unwrap_err();
                assert_is(&error, libc::EAGAIN);
                assert!(error.to_string().contains("a guard"), "{error}");
            }
            drop(crowd);
            assert_works(&launcher).await;
        });
    });
}

#[test]
fn no_process_for_a_command_is_told_and_passes() {
    as_nobody_else("shortage::no_process_for_a_command_is_told_and_passes", || {
        run(async {
            let mut crowd = Crowd::with_room_for(20).await;
            let launcher = launcher();
            let first = start(&launcher, "exec sleep 60").await.tree;
            let supervisor = parent(parent(first.pid()));
            eventually("ready guards", || children(supervisor) > 8).await;
            let mut told = 0;
            for _ in 0..200 {
                crowd.take_all_room();
                // A guard that has just gone makes room for one more.
                match launcher.spawn(bash("true")).await {
                    Ok(started) => drop(started.tree.ended().await),
                    Err(error) => {
                        assert_is(&error, libc::EAGAIN);
                        told += u32::from(error.to_string().contains("a process"));
                    }
                }
            }
            assert!(told > 3, "told {told} times");
            drop(crowd);
            assert_works(&launcher).await;
            first.terminate(NEVER);
            first.ended().await;
        });
    });
}

#[test]
fn no_process_for_a_supervisor_or_a_group_is_told_and_passes() {
    as_somebody(
        "shortage::no_process_for_a_supervisor_or_a_group_is_told_and_passes",
        || {
            run(async {
                for launcher in [Launcher::groups(), launcher()] {
                    limit_processes(1);
                    let error = launcher.spawn(bash("true")).await.unwrap_err();
                    limit_processes(1000);
                    assert_eq!(error.errno(), Some(libc::EAGAIN), "{error}");
                    assert_works(&launcher).await;
                }
            });
        },
    );
}

/// The memory that a process has mapped, in bytes.
fn mapped(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn no_memory_for_a_command_is_told_and_passes() {
    run(async {
        let other = start(&launcher(), "exec sleep 60").await.tree;
        let needed = mapped(parent(other.pid()));
        // Room for what a guard has, not for the stack that a new process starts on. With a cgroup, a guard finds that in
        // what it has.
        let directory = tempfile::tempdir().unwrap();
        let [limit, noted] = ["limit", "pid"].map(|name| directory.path().join(name));
        std::fs::write(&limit, (needed / 1024).to_string()).unwrap();
        let prepare = format!(
            "echo $$ > {}; ulimit -Sv $(<{})",
            noted.display(),
            limit.display()
        );
        let helper = helper_after(directory.path(), &prepare);
        let launcher = Launcher::guarded(helper.cgroups(Cgroups::Off)).unwrap();
        for _ in 0..12 {
            let error = launcher.spawn(bash("true")).await.unwrap_err();
            assert_is(&error, libc::ENOMEM);
        }
        // The next supervisor has more.
        std::fs::write(&limit, "unlimited").unwrap();
        while launcher.spawn(bash("true")).await.is_err() {
            // It makes no more guards when it is another one than it was.
            let supervisor = std::fs::read_to_string(&noted).unwrap();
            prlimit(supervisor.trim().parse().unwrap(), "as", "unlimited");
        }
        assert_works(&launcher).await;
    });
}

#[test]
fn a_supervisor_without_memory_costs_no_command() {
    run(async {
        let launcher = launcher();
        let first = start(&launcher, "exec sleep 60").await.tree;
        let supervisor = parent(parent(first.pid()));
        eventually("ready guards", || children(supervisor) > 8).await;
        assert!(prlimit(supervisor, "as", "4096"));
        // It has what it needs, or it is lost and replaced.
        for _ in 0..20 {
            match launcher.spawn(bash("exit 4")).await {
                Ok(started) => assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(4)),
                Err(error) => assert_is(&error, libc::ENOMEM),
            }
        }
        prlimit(supervisor, "as", "unlimited");
        while launcher.spawn(bash("true")).await.is_err() {}
        assert_works(&launcher).await;
        first.terminate(NEVER);
        first.ended().await;
    });
}
