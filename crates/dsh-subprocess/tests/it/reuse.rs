//! Numbers that come again: no signal reaches a stranger that has one.
//!
//! Each test runs in a pid namespace, where it decides which number comes next.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dsh_subprocess::{LeaderExit, Proof};
use dsh_testkit::namespace::{in_pid_namespace, spawn_as};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::common::{line, run, start};

fn raw(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed())
}

/// A process that leads a group of the number it was given.
fn stranger(pid: u32) -> Child {
    spawn_as(pid, Command::new("sleep").arg("60").process_group(0)).unwrap()
}

/// It lives, and a signal to its number would have ended it.
fn assert_was_spared(mut stranger: Child) {
    assert_eq!(stranger.try_wait().unwrap(), None, "a stranger was ended");
    killpg(raw(stranger.id()), Signal::SIGTERM).unwrap();
    assert_eq!(stranger.wait().unwrap().signal(), Some(libc::SIGTERM));
}

#[test]
fn a_group_that_takes_the_number_after_the_end_is_left_alone() {
    in_pid_namespace(
        "reuse::a_group_that_takes_the_number_after_the_end_is_left_alone",
        || {
            run(async {
                let tree = start("exit 0").await.tree;
                assert_eq!(tree.ended().await.proof, Proof::Group);
                let stranger = stranger(tree.pid());
                tree.terminate(Duration::ZERO);
                assert_eq!(tree.members(), []);
                drop(tree);
                // The watching thread has been round after this.
                start("exit 0").await.tree.ended().await;
                assert_was_spared(stranger);
            });
        },
    );
}

/// The other part of the program reaps a leader before this crate has seen its exit, and starts a process that gets the
/// number: a child of this program that leads a group, like the one that was lost.
#[test]
fn a_child_that_takes_the_number_of_a_leader_reaped_by_others_is_left_alone() {
    in_pid_namespace(
        "reuse::a_child_that_takes_the_number_of_a_leader_reaped_by_others_is_left_alone",
        || {
            run(async {
                let (thread_is_busy, go_on) = hold_the_watching_thread();
                let mut first = start("sleep 60 & echo ready; exit 0").await;
                line(&mut first.stdout).await;
                reap(first.tree.pid()).await;
                tokio::task::spawn_blocking(move || thread_is_busy.recv())
                    .await
                    .unwrap()
                    .unwrap();

                let tree = start("exit 0").await.tree;
                reap(tree.pid()).await;
                let stranger = stranger(tree.pid());
                tree.terminate(Duration::ZERO);
                go_on.send(()).unwrap();
                let end = tree.ended().await;
                assert_eq!(
                    (end.proof, end.leader),
                    (Proof::NotProven, Some(LeaderExit::Lost))
                );
                drop(tree);
                start("exit 0").await.tree.ended().await;
                assert_was_spared(stranger);
            });
        },
    );
}

async fn reap(pid: u32) {
    let reaped = tokio::task::spawn_blocking(move || waitpid(raw(pid), None))
        .await
        .unwrap();
    reaped.expect("nobody else was first");
}

/// Keeps the watching thread in the log with the first that it logs: that a leader was lost.
fn hold_the_watching_thread() -> (Receiver<()>, Sender<()>) {
    let (busy, thread_is_busy) = channel();
    let (go_on, released) = channel();
    let log = SlowLog {
        busy,
        released: Mutex::new(Some(released)),
    };
    tracing::subscriber::set_global_default(log).unwrap();
    (thread_is_busy, go_on)
}

struct SlowLog {
    busy: Sender<()>,
    released: Mutex<Option<Receiver<()>>>,
}

impl tracing::Subscriber for SlowLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn event(&self, _event: &tracing::Event<'_>) {
        let first = self
            .released
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(released) = first {
            self.busy.send(()).unwrap();
            released.recv().unwrap();
        }
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
