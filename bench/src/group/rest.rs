//! What silent tasks take of the processors.

use std::time::Duration;

use super::Report;
use super::core::Core;
use super::processes::{cpu_time, descendants};
use crate::figure::Unit;
use crate::row::{Row, Target};
use crate::{Effort, Failure};

const TASKS: usize = 100;

pub(crate) async fn measure(effort: Effort, report: &Report) -> Result<(), Failure> {
    let core = Core::new()?;
    core.start_silent(core.agent.agent(), TASKS).await?;
    let mut samples = Vec::new();
    // What the starts left to do is done in the first second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..effort.samples(1, 3) {
        let own = std::process::id();
        let others = |all: &[u32]| all.iter().map(|pid| cpu_time(*pid)).sum::<Duration>();
        let all = descendants(own);
        let others_before = others(&all);
        // Looked at last before and first after, so that the looking itself is left out.
        let own_before = cpu_time(own);
        tokio::time::sleep(Duration::from_secs(10)).await;
        let took = cpu_time(own).saturating_sub(own_before);
        let took = took + others(&all).saturating_sub(others_before);
        samples.push(took.as_secs_f64());
    }
    core.shutdown().await;
    let what = format!("processor time of {TASKS} silent tasks and all around them, 10 s");
    let row = Row::new(what, Unit::Time, samples);
    report.row(row.map(|row| row.aims_at(Target::AtMost(10e-3))))
}
