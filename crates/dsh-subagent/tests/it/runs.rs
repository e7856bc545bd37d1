//! One run: its result, its release, and who meets whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_scope::within;
use dsh_subagent::{RunFault, RunResult, StopReason};
use dsh_testkit::{Gate, eventually};

use crate::rig::{Fake, Rig, counted, publish, until_cancelled};

fn releasing(releases: &Arc<AtomicUsize>) -> Fake {
    let releases = Arc::clone(releases);
    Fake::new(move |request| {
        let work = until_cancelled(request.token.clone());
        publish(request, work, counted(Arc::clone(&releases)))
    })
}

#[tokio::test]
async fn sm4_a_disposal_cancels_happens_once_and_is_awaited_by_all() {
    let (release, releases) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let (opened, count) = (release.clone(), Arc::clone(&releases));
    let fake = Fake::new(move |request| {
        let (opened, count) = (opened.clone(), Arc::clone(&count));
        let work = until_cancelled(request.token.clone());
        publish(request, work, async move {
            opened.opened().await;
            counted(count).await
        })
    });
    let rig = Rig::with(&fake);
    let run = rig.start().await.unwrap();
    let clone = run.clone();
    let mut first = tokio_test::task::spawn(run.dispose());
    let mut second = tokio_test::task::spawn(clone.dispose());
    assert!(first.poll().is_pending() && second.poll().is_pending());
    assert_eq!(run.result().await.unwrap(), RunResult::aborted(), "not after it");
    assert!(first.poll().is_pending() && second.poll().is_pending());
    release.open();
    first.await.unwrap();
    second.await.unwrap();
    run.dispose().await.unwrap();
    assert_eq!(releases.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_disposal_that_nobody_awaits_goes_on() {
    let releases = Arc::new(AtomicUsize::new(0));
    let rig = Rig::with(&releasing(&releases));
    let run = rig.start().await.unwrap();
    let mut disposal = tokio_test::task::spawn(run.dispose());
    assert!(disposal.poll().is_pending());
    drop(disposal);
    eventually("the release", || releases.load(Ordering::Relaxed) == 1).await;
    run.dispose().await.unwrap();
}

#[tokio::test]
async fn work_that_hears_nothing_ends_with_the_release() {
    let rig = Rig::with(&Fake::deaf());
    let run = rig.start().await.unwrap();
    run.cancel();
    let mut result = tokio_test::task::spawn(run.result());
    assert!(result.poll().is_pending());
    run.dispose().await.unwrap();
    assert_eq!(result.await.unwrap(), RunResult::aborted());
}

#[tokio::test]
async fn a_result_that_is_there_survives_the_disposal() {
    let rig = Rig::with(&Fake::saying("done"));
    let run = rig.start().await.unwrap();
    run.result().await.unwrap();
    run.dispose().await.unwrap();
    assert_eq!(run.result().await.unwrap(), RunResult::completed("done"));
}

#[tokio::test]
async fn panics_and_faults_of_work_and_release_are_values() {
    let rig = Rig::with(&Fake::new(|request| {
        publish(request, async { panic!("work of glass") }, async {
            panic!("release of glass")
        })
    }));
    let run = rig.start().await.unwrap();
    let fault = run.result().await.unwrap_err();
    assert!(fault.to_string().contains("work of glass"), "{fault}");
    for _ in 0..2 {
        let fault = run.dispose().await.unwrap_err();
        assert!(fault.to_string().contains("release of glass"), "{fault}");
    }

    let rig = Rig::with(&Fake::new(|request| {
        let release = async { Err(RunFault::new("reap failed").caused_by("pid 7")) };
        publish(request, async { Ok(RunResult::completed("done")) }, release)
    }));
    let run = rig.start().await.unwrap();
    assert_eq!(run.result().await.unwrap().stop, StopReason::Completed);
    let fault = run.dispose().await.unwrap_err();
    assert_eq!(fault.to_string(), "reap failed");
    assert_eq!(
        run.result().await.unwrap().stop,
        StopReason::Completed,
        "no matter of the result"
    );
}

#[tokio::test]
async fn the_end_of_a_parent_releases_its_runs_whoever_observes_or_holds_them() {
    for deaf in [false, true] {
        let releases = Arc::new(AtomicUsize::new(0));
        let rig = Rig::with(&if deaf { Fake::deaf() } else { releasing(&releases) });
        let heard = rig.hear(&rig.scope);
        let run = rig.start().await.unwrap();
        let disposed = within(std::time::Duration::from_secs(10), rig.parent.dispose()).await;
        disposed.expect("the parent waits for nobody").unwrap();
        assert_eq!(run.result().await.unwrap().stop, StopReason::Aborted);
        assert_eq!(heard.names(), ["start", "end"]);
        run.dispose().await.unwrap();
        assert_eq!(releases.load(Ordering::Relaxed), usize::from(!deaf));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disposal_the_natural_end_and_the_parents_end_meet_in_every_order() {
    let (mut completed, mut aborted) = (0, 0);
    for round in 0..200_usize {
        let (releases, over) = (Arc::new(AtomicUsize::new(0)), Gate::new());
        let (count, end) = (Arc::clone(&releases), over.clone());
        let fake = Fake::new(move |request| {
            let (token, end) = (request.token.clone(), end.clone());
            let work = async move {
                tokio::select! {
                    () = end.opened() => Ok(RunResult::completed("done")),
                    () = token.cancelled() => Ok(RunResult::aborted()),
                }
            };
            publish(request, work, counted(Arc::clone(&count)))
        });
        let rig = Rig::with(&fake);
        let heard = rig.hear(&rig.scope);
        let run = rig.start().await.unwrap();
        let ending = async {
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            over.open();
        };
        let (disposed, parent, ()) = tokio::join!(run.dispose(), rig.parent.dispose(), ending);
        disposed.unwrap();
        parent.unwrap();
        assert_eq!(releases.load(Ordering::Relaxed), 1);
        assert_eq!(heard.names(), ["start", "end"]);
        match run.result().await.unwrap().stop {
            StopReason::Completed => completed += 1,
            StopReason::Aborted => aborted += 1,
            other => panic!("{other}"),
        }
    }
    assert!(aborted > 0, "completed {completed}");
}

#[tokio::test]
async fn a_guard_disposes_a_run_unless_it_was_disarmed() {
    let releases = Arc::new(AtomicUsize::new(0));
    let rig = Rig::with(&releasing(&releases));
    let run = rig.start().await.unwrap().drop_guard().disarm();
    let mut result = tokio_test::task::spawn(run.result());
    assert!(result.poll().is_pending(), "disarmed");
    drop(run.clone().drop_guard());
    assert_eq!(result.await.unwrap(), RunResult::aborted());
    eventually("the release", || releases.load(Ordering::Relaxed) == 1).await;
    run.dispose().await.unwrap();
    assert_eq!(releases.load(Ordering::Relaxed), 1);
}
