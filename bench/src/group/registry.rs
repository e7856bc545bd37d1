//! Starts and ends of trivial tasks, beside a map, a spawn and a watch for each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dsh_tasks::Serves;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use super::Report;
use super::tasks::Tasks;
use crate::figure::Unit;
use crate::rounds::{Start, in_turns, timed};
use crate::row::{Row, Target};
use crate::{Effort, Failure};

const TASKS: usize = 10_000;

pub(crate) async fn measure(effort: Effort, report: &Report) -> Result<(), Failure> {
    let rounds = effort.samples(5, 25);
    let [one, many, floor] = in_turns::<3>(rounds, Start::Warmed, async |way| match way {
        0 => ours(1).await,
        1 => ours(100).await,
        _ => timed(floor()).await,
    })
    .await?;
    for (owners, ours) in [("1 owner", one), ("100 owners", many)] {
        let what = format!("start and end of 10,000 trivial tasks, {owners}");
        let row = Row::beside(what, Unit::Time, &ours, "map, spawn, watch", &floor);
        report.row(row.map(|row| row.aims_at(Target::RatioAtMost(2.5))))?;
    }
    Ok(())
}

/// From the first start until the last end was announced.
async fn ours(owners: usize) -> Result<f64, Failure> {
    let tasks = Tasks::with_owners(owners)?;
    let (ended, all) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let last = Arc::clone(&all);
    tasks.registry.on_done(&tasks.scope, Serves::Everyone, move |_| {
        if ended.fetch_add(1, Ordering::Relaxed) + 1 == TASKS {
            last.notify_one();
        }
        Box::pin(std::future::ready(Ok(())))
    })?;
    let took = timed(async {
        for number in 0..TASKS {
            let owner = tasks.owner(number).ok_or("there are owners")?;
            tasks.start_trivial(owner)?;
        }
        all.notified().await;
        Ok(())
    });
    let took = took.await?;
    tasks.scope.close().await?;
    Ok(took)
}

/// What no registry can do without: an entry that can be found, a task that ends, somebody who is told.
async fn floor() -> Result<(), Failure> {
    let runtime = Handle::current();
    let map = Mutex::new(HashMap::new());
    for number in 0..TASKS {
        let (ended, end) = watch::channel(None);
        runtime.spawn(async move {
            ended.send_replace(Some(0));
        });
        let entry = ("a trivial task".to_owned(), end);
        let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
        map.insert(format!("trivial-{number}"), entry);
    }
    let map = map.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (_, (_, mut end)) in map {
        end.wait_for(Option::is_some).await?;
    }
    Ok(())
}
