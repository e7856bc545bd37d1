//! A standard input that the owner writes to while the command runs, at every level.

use std::io::ErrorKind;
use std::time::Duration;

use dsh_subprocess::{Cgroups, Launcher, LeaderExit, Proof, Spawned, Stdin, StdinPipe};
use dsh_testkit::eventually;
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cgroup::signal;
use crate::common::{NEVER, bash, launcher_with, line, parent, run, state, text};

/// How much is sent through a pipe.
const MUCH: usize = 10_000_000;

/// A group, a guard with its supervisor, the same with a cgroup where one can be made.
fn levels() -> [Launcher; 3] {
    [
        Launcher::groups(),
        launcher_with(Cgroups::Off),
        launcher_with(Cgroups::Auto),
    ]
}

/// A command that reads a pipe, and the pipe.
async fn open(launcher: &Launcher, command: &str) -> (Spawned, StdinPipe) {
    let mut spec = bash(command);
    spec.stdin = Stdin::Pipe;
    let mut started = launcher.spawn(spec).await.unwrap();
    let stdin = started.stdin.take().unwrap();
    (started, stdin)
}

async fn assert_exits(started: &Spawned, code: i32) {
    let end = started.tree.ended().await;
    assert_eq!(end.leader, Some(LeaderExit::Code(code)));
    assert!(end.proof >= Proof::Group && end.survivors.is_empty(), "{end:?}");
}

#[test]
fn there_is_a_pipe_only_for_who_asked() {
    run(async {
        let started = Launcher::groups().spawn(bash("cat")).await.unwrap();
        assert!(started.stdin.is_none());
        assert_exits(&started, 0).await;
    });
}

#[test]
fn a_command_answers_line_by_line_until_its_input_ends() {
    run(async {
        for launcher in levels() {
            let command = "while read -r line; do echo \"<$line>\"; echo \"got $line\" >&2; done; exit 3";
            let (mut started, mut stdin) = open(&launcher, command).await;
            for request in ["a", "{\"id\":2}", "c"] {
                stdin.write_all(format!("{request}\n").as_bytes()).await.unwrap();
                assert_eq!(line(&mut started.stdout).await, format!("<{request}>"));
                assert_eq!(line(&mut started.stderr).await, format!("got {request}"));
            }
            assert_eq!(started.tree.leader_exited(), None, "its input is open");
            drop(stdin);
            assert_exits(&started, 3).await;
        }
    });
}

#[test]
fn a_shutdown_is_the_end_of_the_input_and_nothing_comes_after_it() {
    run(async {
        for launcher in levels() {
            let (started, mut stdin) = open(&launcher, "cat").await;
            stdin.write_all(b"last").await.unwrap();
            stdin.shutdown().await.unwrap();
            assert_exits(&started, 0).await;
            assert_eq!(text(started.stdout).await, "last");
            let error = stdin.write_all(b"more").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
    });
}

#[test]
fn a_command_that_closes_its_input_makes_a_write_fail_and_lives_on() {
    run(async {
        for launcher in levels() {
            let (mut started, mut stdin) = open(&launcher, "exec <&-; echo closed; exec sleep 60").await;
            assert_eq!(line(&mut started.stdout).await, "closed");
            // Whoever started it, or starts something else now, may have a copy for a moment.
            let error = loop {
                if let Err(error) = stdin.write_all(b"x").await {
                    break error;
                }
                tokio::task::yield_now().await;
            };
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            assert_eq!(started.tree.leader_exited(), None);
            started.tree.terminate(NEVER);
            assert!(started.tree.ended().await.survivors.is_empty());
        }
    });
}

#[test]
fn a_write_that_waits_fails_when_the_command_ends() {
    run(async {
        for launcher in levels() {
            let (mut started, mut stdin) = open(&launcher, "echo ready; read -r -N 1; exec sleep 60").await;
            assert_eq!(line(&mut started.stdout).await, "ready");
            let much = vec![b'x'; MUCH];
            let write = stdin.write_all(&much);
            let name = format!("/proc/{}/comm", started.tree.pid());
            let end = async {
                // It has read one byte, so there is something in the pipe.
                eventually("a command that rests", || {
                    std::fs::read_to_string(&name).is_ok_and(|name| name.trim() == "sleep")
                })
                .await;
                started.tree.terminate(Duration::ZERO);
                started.tree.ended().await
            };
            let (written, end) = tokio::join!(write, end);
            assert_eq!(written.unwrap_err().kind(), ErrorKind::BrokenPipe);
            assert!(end.survivors.is_empty(), "{end:?}");
        }
    });
}

#[test]
fn much_goes_through_while_the_answer_is_read() {
    run(async {
        for launcher in levels() {
            let (started, mut stdin) = open(&launcher, "cat").await;
            let sent: Vec<u8> = (0..MUCH).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let write = async {
                stdin.write_all(&sent).await.unwrap();
                drop(stdin);
            };
            let mut stdout = started.stdout;
            let mut received = Vec::new();
            let (read, ()) = tokio::join!(stdout.read_to_end(&mut received), write);
            assert_eq!(read.unwrap(), MUCH);
            assert!(received == sent, "the same bytes in the same order");
            assert_eq!(started.tree.ended().await.leader, Some(LeaderExit::Code(0)));
        }
    });
}

#[test]
fn a_pipe_that_nobody_reads_holds_up_nothing_else() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let test = async {
        for launcher in levels() {
            let (started, mut stdin) = open(&launcher, "exec sleep 60").await;
            let much = vec![b'x'; MUCH];
            let mut write = std::pin::pin!(stdin.write_all(&much));
            let other = async {
                let (other, mut input) = open(&launcher, "cat").await;
                input.write_all(b"other").await.unwrap();
                drop(input);
                text(other.stdout).await
            };
            tokio::select! {
                written = &mut write => panic!("nobody reads: {written:?}"),
                answer = other => assert_eq!(answer, "other"),
            }
            drop(started);
            assert_eq!(write.await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        }
    };
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), test)
            .await
            .expect("the one thread is held");
    });
}

#[test]
fn a_guard_without_its_supervisor_holds_no_end_of_the_pipe() {
    run(async {
        let launcher = launcher_with(Cgroups::Off);
        let (mut started, mut stdin) = open(&launcher, "cat; echo end").await;
        let supervisor = parent(parent(started.tree.pid()));
        signal(supervisor, Signal::SIGKILL);
        eventually("no supervisor", || state(supervisor).is_none()).await;
        stdin.write_all(b"still\n").await.unwrap();
        assert_eq!(line(&mut started.stdout).await, "still");
        drop(stdin);
        assert_eq!(line(&mut started.stdout).await, "end");
        assert_exits(&started, 0).await;
    });
}
