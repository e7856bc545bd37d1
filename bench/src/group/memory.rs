//! Memory of an idle task, of a live process, and under a flood.

use std::sync::Arc;
use std::time::Duration;

use super::Report;
use super::core::Core;
use super::processes::{bytes, children};
use super::tasks::Tasks;
use crate::figure::Unit;
use crate::row::{Row, Target};
use crate::{Effort, Failure};

const RECORDS: usize = 20_000;
const PROCESSES: usize = 100;
const FLOODS: usize = 3;

pub(crate) async fn measure(effort: Effort, report: &Report) -> Result<(), Failure> {
    // Kept to the end: what one part gave back, the next one would take for nothing.
    let tasks = records(report)?;
    let core = Core::new()?;
    processes(&core, report).await?;
    floods(&core, effort, report).await?;
    core.shutdown().await;
    drop(tasks);
    Ok(())
}

fn records(report: &Report) -> Result<Tasks, Failure> {
    let tasks = Tasks::with_owners(10)?;
    let mut samples = Vec::new();
    // Five parts: the first finds everything else that a first task needs, and tables grow by doubling.
    for part in 0..=5 {
        let before = resident();
        for number in 0..RECORDS {
            let owner = tasks.owner(number).ok_or("there are owners")?;
            tasks.start_idle(owner, None)?;
        }
        if part > 0 {
            samples.push(share(resident() - before, RECORDS));
        }
    }
    let row = Row::new("memory of an idle task: its record", Unit::Memory, samples);
    report.row(row.map(|row| row.aims_at(Target::AtMost(1536.0))))?;
    Ok(tasks)
}

async fn processes(core: &Core, report: &Report) -> Result<(), Failure> {
    core.start_silent(core.agent.agent(), 10).await?;
    let before = resident();
    core.start_silent(core.agent.agent(), PROCESSES).await?;
    let each = share(resident() - before, PROCESSES);
    report.row(Row::new(
        "memory of a live process: in the harness",
        Unit::Memory,
        vec![each],
    ))?;
    let supervisors = children(std::process::id());
    let guards = supervisors.iter().flat_map(|supervisor| children(*supervisor));
    let shares = guards.map(|guard| bytes(guard, "smaps_rollup", "Pss:"));
    let what = "memory of a live process: its guard's share";
    let row = Row::new(what, Unit::Memory, shares.collect());
    report.row(row.map(|row| row.aims_at(Target::AtMost(100.0 * 1024.0))))
}

async fn floods(core: &Core, effort: Effort, report: &Report) -> Result<(), Failure> {
    let owner = Arc::clone(core.agent.agent());
    let before = resident();
    // From now on the peak is that of the flood.
    std::fs::write("/proc/self/clear_refs", "5")?;
    for _ in 0..FLOODS {
        core.background(&owner, "exec yes").await?;
    }
    let seconds = effort.samples(3, 30) as u64;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let peak = bytes(std::process::id(), "status", "VmHWM:") - before;
    let what = format!("memory under {FLOODS} floods, {seconds} s: peak above rest");
    let row = Row::new(what, Unit::Memory, vec![peak]);
    report.row(row.map(|row| row.aims_at(Target::AtMost(16.0 * 1024.0 * 1024.0))))
}

fn resident() -> f64 {
    bytes(std::process::id(), "status", "VmRSS:")
}

#[expect(clippy::cast_precision_loss, reason = "counts here have few digits")]
fn share(bytes: f64, count: usize) -> f64 {
    bytes / count as f64
}
