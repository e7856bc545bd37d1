//! Programs whose execution hangs in the kernel, as on a file system that does not answer.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dsh_subprocess::{Cgroups, LeaderExit, ProcessSpec, Proof};
use dsh_testkit::eventually;

use crate::cgroup::left_out;
use crate::common::{launcher_with, listed_children, parent, run, start};

/// Asks the kernel to be asked before a file is executed (`FAN_OPEN_EXEC_PERM`), and never answers.
const HOLD: &str = "import ctypes, os, sys\n\
                    libc = ctypes.CDLL(None, use_errno=True)\n\
                    group = libc.fanotify_init(0x4, os.O_RDONLY)\n\
                    marked = libc.fanotify_mark(group, 1, ctypes.c_uint64(0x40000), -100, os.fsencode(sys.argv[1]))\n\
                    held = group >= 0 and marked == 0\n\
                    print('held' if held else os.strerror(ctypes.get_errno()), flush=True)\n\
                    sys.stdin.read()";

/// Whoever executes a file waits until this is dropped.
struct Held(Child);

impl Held {
    fn new(file: &Path) -> Option<Held> {
        let mut python = Command::new("python3");
        python
            .args(["-c", HOLD])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut held = Held(python.spawn().ok()?);
        let mut answer = String::new();
        let stdout = held.0.stdout.take()?;
        BufReader::new(stdout).read_line(&mut answer).ok()?;
        (answer == "held\n").then_some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program of its own in a directory.
fn program(directory: &Path) -> PathBuf {
    let program = directory.join("program");
    std::fs::copy("/bin/sleep", &program).unwrap();
    program
}

/// The children of all guards of a supervisor.
fn below_guards(supervisor: u32) -> Vec<u32> {
    listed_children(supervisor)
        .into_iter()
        .flat_map(listed_children)
        .collect()
}

#[test]
fn a_start_that_hangs_and_is_given_up_leaves_nobody() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let program = program(directory.path());
        let Some(_held) = Held::new(&program) else {
            return left_out("no execution can be held up here");
        };
        for cgroups in [Cgroups::Auto, Cgroups::Off] {
            let launcher = launcher_with(cgroups);
            let first = start(&launcher, "exec sleep 60").await.tree;
            let guard = parent(first.pid());
            let supervisor = parent(guard);
            let mut spec = ProcessSpec::new(&program, directory.path());
            spec.args = vec!["60".into()];
            spec.kill_bound = Duration::from_millis(300);
            let mut start_that_hangs = Box::pin(launcher.spawn(spec));
            tokio::select! {
                started = &mut start_that_hangs => panic!("it does not hang: {started:?}"),
                () = eventually("one that is being started", || below_guards(supervisor).len() == 2) => {}
            }
            // Nobody answers, and nobody gives it up.
            let patience = tokio::time::timeout(Duration::from_millis(1200), &mut start_that_hangs);
            assert!(patience.await.is_err(), "it does not hang");
            assert_eq!(below_guards(supervisor).len(), 2);
            drop(start_that_hangs);
            eventually("nobody but the first", || {
                below_guards(supervisor) == [first.pid()]
            })
            .await;
            let next = start(&launcher, "exit 4").await.tree;
            assert_eq!(next.leader_exit().await, LeaderExit::Code(4));
            drop(next);
            first.terminate(Duration::ZERO);
            assert_eq!(first.ended().await.proof, Proof::Guard);
        }
    });
}
