//! Numbers that come again, in a pid namespace: no signal reaches a stranger that has one.

use std::collections::HashSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dsh_subprocess::{Cgroups, Launcher, Proof};
use dsh_testkit::eventually;
use dsh_testkit::namespace::{give_next, in_pid_namespace, spawn_as};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Marked, bash, children, launcher, launcher_with, parent, run, start};

#[test]
fn a_process_that_takes_the_number_of_a_lost_guard_is_left_alone() {
    in_pid_namespace(
        "reuse::a_process_that_takes_the_number_of_a_lost_guard_is_left_alone",
        || {
            run(async {
                let launcher = launcher_with(Cgroups::Off);
                let mut marked = Marked::start(&launcher, "echo ready; exec sleep 60").await;
                // Its guard holds its text, so it has to have read that.
                assert_eq!(marked.line().await, "ready");
                let tree = &marked.started.tree;
                let guard = parent(tree.pid());
                for pid in [parent(guard), guard] {
                    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
                    eventually("a free number", || !Path::new(&format!("/proc/{pid}")).exists()).await;
                }
                let end = tree.ended().await;
                assert_eq!((end.proof, end.survivors.len()), (Proof::NotProven, 1));

                let mut family = Command::new("bash");
                family.args(["-c", "sleep 60 & wait"]).process_group(0);
                let mut stranger = spawn_as(guard, &mut family).unwrap();
                eventually("its child", || children(guard) == 1).await;
                assert_eq!(tree.members(), [], "the children of a stranger are no members");
                tree.terminate(Duration::ZERO);
                drop(marked);
                // The watching thread has been round after this.
                start(&launcher, "exit 0").await.tree.ended().await;
                assert_eq!((stranger.try_wait().unwrap(), children(guard)), (None, 1));
            });
        },
    );
}

/// All numbers are among a few hundred, so each comes again within moments; those who are no member of any tree must
/// not notice.
#[test]
fn trees_ended_where_numbers_come_again_at_once_hurt_no_stranger() {
    in_pid_namespace(
        "reuse::trees_ended_where_numbers_come_again_at_once_hurt_no_stranger",
        || {
            let world = World::default();
            std::thread::scope(|scope| {
                scope.spawn(|| world.turn_numbers_back());
                for _ in 0..3 {
                    scope.spawn(|| world.be_strangers());
                }
                let end = End(&world.over);
                run(end_trees(&world, 60));
                drop(end);
            });
            let leaders = world.leaders.into_inner().unwrap();
            let strangers = world.strangers.into_inner().unwrap();
            let both = leaders.intersection(&strangers).count();
            assert!(
                both * 2 >= leaders.len(),
                "numbers hardly came again: {both} of {}",
                leaders.len()
            );
        },
    );
}

/// Sets it also when the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct World {
    over: AtomicBool,
    leaders: Mutex<HashSet<u32>>,
    strangers: Mutex<HashSet<u32>>,
}

impl World {
    fn turn_numbers_back(&self) {
        while !self.over.load(Ordering::Relaxed) {
            give_next(310);
            // sleep: as many processes as start meanwhile have different numbers
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn be_strangers(&self) {
        while !self.over.load(Ordering::Relaxed) {
            let mut stranger = Command::new("sleep")
                .arg("0.004")
                .process_group(0)
                .spawn()
                .unwrap();
            self.strangers.lock().unwrap().insert(stranger.id());
            let exit = stranger.wait().unwrap();
            assert!(exit.success(), "a stranger was ended: {exit}");
        }
    }
}

async fn end_trees(world: &World, rounds: u64) {
    let (guards, groups) = (launcher(), Launcher::groups());
    for round in 0..rounds {
        let (launcher, command) = match round % 3 {
            0 => (
                &groups,
                "trap '' TERM; for i in {1..40}; do sleep 0.003 & done; wait; sleep 60",
            ),
            1 => (
                &guards,
                "trap '' TERM; for i in {1..40}; do (setsid sleep 0.003 &); done; sleep 60",
            ),
            _ => (
                &guards,
                "for i in {1..20}; do (setsid sleep 0.01 &); sleep 0.005 & done; wait",
            ),
        };
        let tree = launcher.spawn(bash(command)).await.unwrap().tree;
        world.leaders.lock().unwrap().insert(tree.pid());
        // sleep: a moment that is different each time
        tokio::time::sleep(Duration::from_millis(round * 7 % 60)).await;
        tree.terminate(Duration::from_millis(round % 4 * 5));
        let end = tree.ended().await;
        assert!(end.proof >= Proof::Group && end.survivors.is_empty(), "{end:?}");
    }
}
