//! The groups of rows, each in a process of its own.

mod capture;
mod core;
mod endings;
mod mcp;
mod memory;
mod output;
mod processes;
mod records;
mod registry;
mod rest;
mod spawn;
mod tasks;
mod waits;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use clap::ValueEnum;

use crate::row::Row;
use crate::{Effort, Failure};

pub(crate) use capture::Flood;

/// What makes some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Group {
    /// Starts and ends of trivial tasks.
    Registry,
    /// `get`, `read`, `kill` and `list` among many records.
    Records,
    /// Who waits is woken.
    Waits,
    /// `task_output` through the pipeline.
    Output,
    /// Commands, from start to end, while the program holds 50 MiB.
    Spawn,
    /// The same while it holds 2 GiB.
    SpawnLarge,
    /// Output taken in.
    Capture,
    /// Memory of a task and of a process, and under a flood.
    Memory,
    /// Ends of large trees and of many tasks.
    Endings,
    /// A round trip over MCP.
    Mcp,
    /// Silent tasks at rest.
    Rest,
}

/// Where a group puts its rows.
pub(crate) struct Report;

impl Report {
    /// Hands a row on as soon as it is there. One without samples is a failure.
    pub(crate) fn row(&self, row: Option<Row>) -> Result<(), Failure> {
        let row = row.ok_or("a row has no samples")?;
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{}", serde_json::to_string(&row)?)?;
        stdout.flush()?;
        Ok(())
    }
}

impl Group {
    /// Those that were asked for; all when nobody asked.
    pub(crate) fn chosen(only: &[Group]) -> impl Iterator<Item = Group> {
        let all = Group::value_variants().iter().copied();
        all.filter(|group| only.is_empty() || only.contains(group))
    }

    /// Measures the group here, and prints its rows.
    pub(crate) fn measure(self, effort: Effort) -> Result<(), Failure> {
        // A harness with this much memory of its own; what it holds must not matter to a start.
        let ballast = match self {
            Group::Spawn => vec![1_u8; 50 << 20],
            Group::SpawnLarge => vec![1_u8; 2 << 30],
            _ => Vec::new(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(async {
            match self {
                Group::Registry => registry::measure(effort, &Report).await,
                Group::Records => records::measure(effort, &Report).await,
                Group::Waits => waits::measure(effort, &Report).await,
                Group::Output => output::measure(effort, &Report).await,
                Group::Spawn => spawn::measure(effort, &Report, spawn::Harness::Small).await,
                Group::SpawnLarge => spawn::measure(effort, &Report, spawn::Harness::Large).await,
                Group::Capture => capture::measure(effort, &Report).await,
                Group::Memory => memory::measure(effort, &Report).await,
                Group::Endings => endings::measure(effort, &Report).await,
                Group::Mcp => mcp::measure(effort, &Report).await,
                Group::Rest => rest::measure(effort, &Report).await,
            }
        })?;
        drop(std::hint::black_box(ballast));
        Ok(())
    }

    /// Measures the group in a process of its own.
    pub(crate) fn in_a_process(self, effort: Effort) -> Result<Vec<Row>, Failure> {
        let name = self.to_possible_value().map(|value| value.get_name().to_owned());
        let name = name.unwrap_or_default();
        let begun = std::time::Instant::now();
        eprint!("{name} …");
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["group", &name]).stdout(Stdio::piped());
        if effort == Effort::Quick {
            command.arg("--quick");
        }
        let mut child = command.spawn()?;
        let mut rows = Vec::new();
        let lines = child.stdout.take().map(BufReader::new).into_iter();
        for line in lines.flat_map(BufRead::lines) {
            rows.push(serde_json::from_str(&line?)?);
        }
        let status = child.wait()?;
        eprintln!(" {:.1} s", begun.elapsed().as_secs_f64());
        if status.success() {
            Ok(rows)
        } else {
            Err(format!("the group {name} failed ({status})").into())
        }
    }
}
