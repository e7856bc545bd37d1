//! How soon who waits is woken, beside a `watch`.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use dsh_tasks::{Outcome, StartSpec, Work};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Report;
use super::tasks::Tasks;
use crate::figure::Unit;
use crate::rounds::{Start, in_turns};
use crate::row::{Row, Target};
use crate::{Effort, Failure};

pub(crate) async fn measure(effort: Effort, report: &Report) -> Result<(), Failure> {
    let tasks = Arc::new(Tasks::with_owners(1)?);
    for (waiters, name) in [(1, "1 waiter"), (100, "100 waiters")] {
        let rounds = effort.samples(200, 2_000);
        let [ours, floor] = in_turns::<2>(rounds, Start::Warmed, async |way| match way {
            0 => ours(&tasks, waiters).await,
            _ => floor(waiters).await,
        })
        .await?;
        let what = format!("wake of a `wait`, {name}");
        let row = Row::beside(what, Unit::Time, &ours, "`watch`", &floor);
        report.row(row.map(|row| row.aims_at(Target::RatioAtMost(2.0))))?;
    }
    tasks.scope.close().await?;
    Ok(())
}

/// From the end of the work until the last waiter has it.
async fn ours(tasks: &Arc<Tasks>, waiters: usize) -> Result<f64, Failure> {
    let owner = Arc::clone(tasks.owner(0).ok_or("there is an owner")?);
    let (end, over) = oneshot::channel();
    let spec = StartSpec::new("wait", "something to wait for", || {
        let done = async {
            // Dropped or sent, it is over.
            let _ = over.await;
            Outcome::completed()
        };
        Ok(Work::new(done, |_| Ok(())))
    });
    let id = tasks.registry.start(spec.owned_by(owner.clone()))?;
    measure_wake(waiters, end, || {
        let (tasks, id, owner) = (Arc::clone(tasks), id.clone(), Arc::clone(&owner));
        async move {
            let token = CancellationToken::new();
            let waited = tasks.registry.wait(&id, Some(&owner), 60_000.0, &token).await;
            waited.map(|waited| waited.claim.deliver()).is_ok()
        }
    })
    .await
}

/// A task that ends, and a `watch` that says so.
async fn floor(waiters: usize) -> Result<f64, Failure> {
    let (end, over) = oneshot::channel();
    let ended = watch::Sender::new(None);
    let end_of_task = ended.clone();
    let task = Handle::current().spawn(async move {
        let _: Result<(), _> = over.await;
        end_of_task.send_replace(Some(0));
    });
    let took = measure_wake(waiters, end, || {
        let mut ended = ended.subscribe();
        async move { ended.wait_for(Option::is_some).await.is_ok() }
    });
    let took = took.await?;
    task.await?;
    Ok(took)
}

/// Makes the waiters, waits until each of them waits, then ends what they wait for.
async fn measure_wake<W>(
    waiters: usize,
    end: oneshot::Sender<()>,
    waiter: impl Fn() -> W,
) -> Result<f64, Failure>
where
    W: Future<Output = bool> + Send + 'static,
{
    let waiting = Arc::new(AtomicUsize::new(0));
    let mut all: Vec<JoinHandle<bool>> = Vec::new();
    for _ in 0..waiters {
        let (wait, waiting) = (waiter(), Arc::clone(&waiting));
        all.push(Handle::current().spawn(async move {
            let mut wait = pin!(wait);
            let mut first = true;
            std::future::poll_fn(move |context| {
                let polled = wait.as_mut().poll(context);
                if std::mem::take(&mut first) {
                    waiting.fetch_add(1, Ordering::Release);
                }
                polled
            })
            .await
        }));
    }
    while waiting.load(Ordering::Acquire) < waiters {
        tokio::task::yield_now().await;
    }
    let begun = Instant::now();
    end.send(()).map_err(|()| "nobody waits for the end")?;
    let mut woken = true;
    for waiter in all {
        woken &= waiter.await?;
    }
    let took = begun.elapsed().as_secs_f64();
    if woken {
        Ok(took)
    } else {
        Err("a wait failed".into())
    }
}
