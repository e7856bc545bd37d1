//! `task_output` through the tool pipeline, beside the read itself.

use std::sync::Arc;
use std::time::Instant;

use dsh_output::{OutputConfig, OutputLog, Rendering, Stream};
use dsh_tasks::{StartSpec, TaskId, Work};
use serde_json::json;

use super::Report;
use super::core::Core;
use crate::figure::Unit;
use crate::rounds::{Start, each, in_turns};
use crate::row::{Row, Target};
use crate::{Effort, Failure};

/// Calls in one sample.
const CALLS: usize = 100;

/// What is new before each call: ten lines, as a build writes them.
const NEWS: &[u8] = &[b'x'; 800];

pub(crate) async fn measure(effort: Effort, report: &Report) -> Result<(), Failure> {
    let core = Core::new()?;
    let (id, log) = start_writer(&core)?;
    let rounds = effort.samples(20, 100);
    for others in ["alone", "beside 10,000 other tasks"] {
        if others != "alone" {
            for _ in 0..10_000 {
                start_idle(&core)?;
            }
        }
        let [ours, floor] = in_turns::<2>(rounds, Start::Warmed, async |way| match way {
            0 => through_the_pipeline(&core, &id, &log).await,
            _ => read(&core, &id, &log),
        })
        .await?;
        let what = format!("`task_output` through the pipeline, {others}");
        let row = Row::beside(what, Unit::Time, &ours, "the read itself", &floor);
        report.row(row.map(|row| row.aims_at(Target::AtMost(20e-6))))?;
    }
    Ok(())
}

async fn through_the_pipeline(core: &Core, id: &TaskId, log: &OutputLog) -> Result<f64, Failure> {
    let mut took = std::time::Duration::ZERO;
    for _ in 0..CALLS {
        write_news(log);
        let begun = Instant::now();
        let text = core.call(core.agent.agent(), "task_output", json!({"task_id": id.as_str()}));
        let text = text.await?;
        took += begun.elapsed();
        if text.len() < NEWS.len() {
            return Err(format!("task_output said only {text:?}").into());
        }
    }
    Ok(each(CALLS, took))
}

fn read(core: &Core, id: &TaskId, log: &OutputLog) -> Result<f64, Failure> {
    let tasks = &core.services.context().tasks;
    let mut took = std::time::Duration::ZERO;
    for _ in 0..CALLS {
        write_news(log);
        let begun = Instant::now();
        let read = tasks.read(id, Some(core.agent.agent()), 64_000)?;
        std::hint::black_box(&read.text);
        read.claim.deliver();
        took += begun.elapsed();
    }
    Ok(each(CALLS, took))
}

fn write_news(log: &OutputLog) {
    for line in NEWS.chunks(80) {
        log.append(Stream::Stdout, line);
        log.append(Stream::Stdout, b"\n");
    }
}

fn start_writer(core: &Core) -> Result<(TaskId, OutputLog), Failure> {
    let log = OutputLog::new(OutputConfig::default());
    let output = Arc::new(log.reader(Rendering::Sections));
    let spec = StartSpec::new("writer", "a build that says something", || {
        Ok(Work::new(std::future::pending(), |_| Ok(())).output(output))
    });
    let spec = spec.owned_by(core.agent.agent().clone());
    Ok((core.services.context().tasks.start(spec)?, log))
}

fn start_idle(core: &Core) -> Result<TaskId, Failure> {
    let spec = StartSpec::new("idle", "wait for something that never comes", || {
        Ok(Work::new(std::future::pending(), |_| Ok(())))
    });
    let tasks = &core.services.context().tasks;
    Ok(tasks.start(spec.owned_by(core.agent.agent().clone()))?)
}
