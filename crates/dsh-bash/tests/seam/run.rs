//! Who waits, and who ends what.

use std::time::Duration;

use dsh_bash::{
    BashExecutor, BashSpec, Cut, EndReason, Member, ProcessState, RunError, ShellExit, ended_within, run,
};
use dsh_output::{OutputConfig, Stream};
use tokio_test::task::spawn;
use tokio_test::{assert_pending, assert_ready};
use tokio_util::sync::CancellationToken;

use crate::played::{Check, Played};

const CLEAN: ShellExit = ShellExit::Code(0);

#[tokio::test(start_paused = true)]
async fn c1_a_run_is_a_start_and_a_wait_for_the_shell() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    let process = bash.only();
    process.log.append(Stream::Stdout, b"out");
    process.log.append(Stream::Stderr, b"err");
    process.exit_shell(ShellExit::Code(3));
    assert_pending!(running.poll(), "the output is not drained yet");
    let left = vec![Member {
        pid: 7,
        command: "sleep".into(),
    }];
    process.drain(ShellExit::Code(3), left.clone());
    let result = assert_ready!(running.poll()).unwrap();
    assert_eq!(
        (result.exit, result.cut, result.left),
        (ShellExit::Code(3), None, left)
    );
    assert_eq!(
        (
            result.stdout.text.as_str(),
            result.stderr.text.as_str(),
            result.told
        ),
        ("out", "err", 6)
    );
    drop(running);
    assert_eq!(
        process.asked(),
        None,
        "what is left is the caller's to decide about"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_left_may_write_while_the_result_is_read_and_no_byte_is_told_twice() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let budget = OutputConfig::default().memory_bytes;
    let spec = BashSpec {
        stdout_max_bytes: budget,
        stderr_max_bytes: budget,
        ..bash.spec()
    };
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    let process = bash.only();
    process.drain(CLEAN, Vec::new());
    let (log, done) = (process.log.clone(), CancellationToken::new());
    let (flooded, stop) = (log.clone(), done.clone());
    let flood = std::thread::spawn(move || {
        for _ in 0..budget / 2 {
            flooded.append(Stream::Stdout, b"x");
            flooded.append(Stream::Stderr, b"y");
            if stop.is_cancelled() {
                break;
            }
        }
    });
    while log.is_empty() {
        std::thread::yield_now();
    }
    let result = assert_ready!(running.poll()).unwrap();
    done.cancel();
    flood.join().unwrap();
    let told = result.stdout.text.len() + result.stderr.text.len();
    assert_eq!(told as u64, result.told);
}

#[tokio::test(start_paused = true)]
async fn c52_a_timeout_waits_for_the_end_it_asked_for() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    let process = bash.only();
    *process.obeys.lock().unwrap() = None;
    tokio::time::advance(Duration::from_millis(999)).await;
    assert_pending!(running.poll());
    assert_eq!(process.asked(), None);
    tokio::time::advance(Duration::from_millis(2)).await;
    assert_pending!(running.poll(), "the tree is not gone yet");
    let reason = EndReason::TimedOut {
        after: Duration::from_secs(1),
    };
    assert_eq!(process.asked(), Some(reason));
    token.cancel();
    assert_pending!(running.poll());
    process.end(CLEAN);
    let result = assert_ready!(running.poll()).unwrap();
    assert_eq!(
        (result.exit, result.cut),
        (CLEAN, Some(Cut::TimedOut)),
        "the first cause counts"
    );
    assert_eq!(process.asked(), Some(reason));
}

#[tokio::test(start_paused = true)]
async fn c53_a_cancelled_caller_is_not_a_timeout() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    let process = bash.only();
    *process.obeys.lock().unwrap() = None;
    token.cancel();
    assert_pending!(running.poll());
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_pending!(running.poll());
    process.end(CLEAN);
    let result = assert_ready!(running.poll()).unwrap();
    assert_eq!(result.cut, Some(Cut::Aborted));
    assert_eq!(process.asked(), Some(EndReason::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_does_not_hit_a_shell_that_has_exited() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    let process = bash.only();
    process.exit_shell(CLEAN);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_pending!(running.poll());
    assert_eq!(process.asked(), None);
    process.drain(CLEAN, Vec::new());
    assert_eq!(assert_ready!(running.poll()).unwrap().cut, None);
}

#[tokio::test(start_paused = true)]
async fn an_exit_and_a_timeout_in_the_same_instant_are_an_exit() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    tokio::time::advance(Duration::from_secs(2)).await;
    bash.only().end(ShellExit::Code(4));
    let result = assert_ready!(running.poll()).unwrap();
    assert_eq!((result.exit, result.cut), (ShellExit::Code(4), None));
}

#[tokio::test(start_paused = true)]
async fn an_exit_that_nobody_saw_is_told_with_what_the_end_showed() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    let process = bash.only();
    let unseen = |reason: &str| ShellExit::Unseen {
        reason: reason.into(),
    };
    process.drain(unseen("guard lost"), Vec::new());
    assert_pending!(running.poll(), "that alone is no finding");
    let found = unseen("guard lost; tree seen empty");
    let survivor = Member {
        pid: 4242,
        command: "sleep 60".into(),
    };
    process.end_with(found.clone(), vec![survivor.clone()]);
    let result = assert_ready!(running.poll()).unwrap();
    assert_eq!((result.exit, result.cut), (found, None));
    assert_eq!((result.left, result.survivors), (Vec::new(), vec![survivor]));
}

#[tokio::test(start_paused = true)]
async fn c14_c36_a_cancelled_token_starts_nothing() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    token.cancel();
    let refusal = run(&bash, &bash.spec(), &token).await.err().unwrap();
    assert_eq!(refusal, RunError::AbortedBeforeSpawn);
    assert_eq!(refusal.to_string(), "aborted before spawn: aborted");
    assert!(bash.started.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_asks_for_the_end() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    drop(running);
    assert_eq!(bash.only().asked(), Some(EndReason::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn what_never_ran_has_no_result() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    bash.only().end(ShellExit::Failed {
        reason: "spawn failed: no".into(),
    });
    assert_eq!(
        assert_ready!(running.poll()).err().unwrap().to_string(),
        "spawn failed: no"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_counts_to_the_end_and_not_to_the_exit() {
    let bash = Played::default();
    let process = bash.start(&bash.spec()).unwrap();
    let deadline = Duration::from_millis(700);
    let mut waiting = spawn(ended_within(&*process, Some(deadline)));
    assert_pending!(waiting.poll());
    bash.only().exit_shell(CLEAN);
    tokio::time::advance(deadline).await;
    let end = assert_ready!(waiting.poll());
    assert_eq!(end.asked.unwrap().reason, EndReason::TimedOut { after: deadline });
}

#[tokio::test(start_paused = true)]
async fn without_a_deadline_nothing_ends_it() {
    let bash = Played::default();
    let process = bash.start(&bash.spec()).unwrap();
    let mut waiting = spawn(ended_within(&*process, None));
    assert_pending!(waiting.poll());
    tokio::time::advance(Duration::from_secs(1_000_000)).await;
    assert_pending!(waiting.poll());
    drop(waiting);
    assert_eq!(
        (bash.only().asked(), process.state()),
        (None, ProcessState::Running)
    );
}

fn hanging() -> Played {
    let bash = Played::default();
    *bash.check.lock().unwrap() = Check::Never;
    bash
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_does_not_answer_is_named_at_the_timeout_and_nothing_is_started() {
    let (bash, token) = (hanging(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    tokio::time::advance(spec.timeout).await;
    let error = assert_ready!(running.poll()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "working directory / does not answer: nothing was heard within 1000ms, so nothing was started; see whether \
         its file system is still there"
    );
    assert!(bash.started.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_caller_does_not_wait_for_a_directory_any_longer_than_it_likes() {
    let (bash, token) = (hanging(), CancellationToken::new());
    let spec = bash.spec();
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    token.cancel();
    let error = assert_ready!(running.poll()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "aborted before spawn: working directory / had not answered"
    );
    assert!(bash.started.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_timeout_counts_from_the_call_and_not_from_the_answer_of_the_directory() {
    let (bash, token) = (Played::default(), CancellationToken::new());
    let spec = bash.spec();
    let most = spec.timeout - Duration::from_millis(1);
    *bash.check.lock().unwrap() = Check::After(most);
    let mut running = spawn(run(&bash, &spec, &token));
    assert_pending!(running.poll());
    tokio::time::advance(most).await;
    assert_pending!(running.poll());
    bash.only();
    tokio::time::advance(Duration::from_millis(1)).await;
    let result = assert_ready!(running.poll()).unwrap();
    assert_eq!(result.cut, Some(Cut::TimedOut));
    assert_eq!(result.timeout, spec.timeout);
}
