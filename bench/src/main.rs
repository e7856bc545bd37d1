//! What it all costs, beside what the kernel or a bare data structure costs: every figure with its floor, measured in
//! turns in the same run. `cargo xtask bench` builds it and runs it.
//!
//! A *row* is one line of the table. A *group* is what makes some rows; each runs in a process of its own, so that none
//! measures what another one left in memory.

mod figure;
mod rounds;
mod row;

mod group;

mod document;
mod machine;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::group::Group;
use crate::row::Row;

/// Whatever went wrong.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What it all costs, beside what the kernel or a bare data structure costs.
#[derive(Parser)]
#[command(name = "bench")]
struct Cli {
    /// Every row, from few samples.
    #[arg(long, global = true)]
    quick: bool,
    /// Exit with 1 when a row is beyond twice its target, and name it.
    #[arg(long)]
    check: bool,
    /// Write the table into this document, between its markers.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Only these groups.
    #[arg(long, value_name = "GROUP", value_enum)]
    only: Vec<Group>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What the program starts of itself.
#[derive(Subcommand)]
enum Part {
    /// Measure one group here, and print its rows as lines of JSON.
    #[command(hide = true)]
    Group {
        #[arg(value_enum)]
        group: Group,
    },
    /// Write for as long as somebody reads.
    #[command(hide = true)]
    Flood {
        #[arg(value_enum)]
        flood: group::Flood,
    },
}

/// How many samples there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    Quick,
    Full,
}

impl Effort {
    /// As many samples as this effort allows.
    fn samples(self, quick: usize, full: usize) -> usize {
        match self {
            Effort::Quick => quick,
            Effort::Full => full,
        }
    }
}

fn main() -> ExitCode {
    dsh_subprocess::guard_entry();
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let effort = if cli.quick { Effort::Quick } else { Effort::Full };
    match cli.part {
        Some(Part::Group { group }) => group.measure(effort).map(|()| ExitCode::SUCCESS),
        Some(Part::Flood { flood }) => flood.write().map(|()| ExitCode::SUCCESS),
        None => whole(&cli, effort),
    }
}

fn whole(cli: &Cli, effort: Effort) -> Result<ExitCode, Failure> {
    let machine = machine::describe(effort);
    let mut rows = Vec::new();
    for group in Group::chosen(&cli.only) {
        rows.extend(group.in_a_process(effort)?);
    }
    let table = table::render(&machine, &rows);
    println!("{table}");
    if let Some(path) = &cli.write {
        document::write(path, &table)?;
    }
    let beyond: Vec<&Row> = rows.iter().filter(|row| row.is_far_off()).collect();
    if !cli.check || beyond.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for row in beyond {
        eprintln!("far from its target: {}", row.what);
    }
    Ok(ExitCode::FAILURE)
}
