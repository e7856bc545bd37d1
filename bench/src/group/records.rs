//! `get`, `read`, `kill` and `list` among more and more records.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use dsh_agent::{Agent, AgentHandle};
use dsh_output::{OutputConfig, OutputLog, Rendering};
use dsh_tasks::{TaskId, TaskSnapshot};

use super::Report;
use super::tasks::Tasks;
use crate::figure::Unit;
use crate::rounds::{Start, each, in_turns};
use crate::row::{Row, Target};
use crate::{Effort, Failure};

const SIZES: [usize; 4] = [10, 1_000, 10_000, 100_000];
const NAMES: [&str; 4] = ["10", "1,000", "10,000", "100,000"];

/// Calls in one sample.
const CALLS: usize = 500;

/// How many tasks the owner has whose tasks are listed.
const LISTED: usize = 10;

/// What is called.
#[derive(Clone, Copy)]
enum Operation {
    Get,
    Read,
    Kill,
}

pub(crate) async fn measure(effort: Effort, report: &Report) -> Result<(), Failure> {
    let crowds = SIZES.map(Crowd::of);
    let [Ok(ten), Ok(thousand), Ok(more), Ok(most)] = crowds else {
        return Err("the records could not be made".into());
    };
    let crowds = [ten, thousand, more, most];
    let rounds = effort.samples(20, 100);
    for (name, operation) in [
        ("get", Operation::Get),
        ("read", Operation::Read),
        ("kill", Operation::Kill),
    ] {
        let samples = in_turns::<8>(rounds, Start::Warmed, async |way| {
            let crowd = &crowds[way / 2];
            match way % 2 {
                0 => crowd.ours(operation),
                _ => Ok(crowd.floor()),
            }
        });
        let samples = samples.await?;
        for (size, pair) in NAMES.iter().zip(samples.chunks(2)) {
            let what = format!("`{name}` at {size} records");
            let row = Row::beside(what, Unit::Time, &pair[0], "map under a mutex", &pair[1]);
            report.row(row.map(|row| row.aims_at(Target::AtMost(1e-6))))?;
        }
        // Where the records no longer fit into a cache, the map grows dearer, too.
        let [ours, floor] = [0, 1].map(|way| growth(&samples[way], &samples[way + 6]));
        let what = format!("`{name}`, growth from 10 to 100,000 records");
        let row = Row::beside(what, Unit::Times, &ours, "map under a mutex", &floor);
        report.row(row.map(|row| row.aims_at(Target::RatioAtMost(1.2))))?;
    }
    lists(&crowds, rounds, report).await
}

async fn lists(crowds: &[Crowd; 4], rounds: usize, report: &Report) -> Result<(), Failure> {
    let rows = crowds[0].list();
    let samples = in_turns::<5>(rounds, Start::Warmed, async |way| match crowds.get(way) {
        Some(crowd) => Ok(timed_calls(50, |_| drop(black_box(crowd.list())))),
        None => Ok(timed_calls(50, |_| drop(black_box(rows.clone())))),
    });
    let samples = samples.await?;
    for (size, ours) in NAMES.iter().zip(&samples) {
        let what = format!("`list` of {LISTED} own tasks beside {size} others");
        report.row(Row::beside(
            what,
            Unit::Time,
            ours,
            "a copy of the rows",
            &samples[4],
        ))?;
    }
    let what = format!("`list` of {LISTED} own tasks, beside 100,000 others to beside 10");
    let row = Row::beside(what, Unit::Time, &samples[3], "beside 10", &samples[0]);
    report.row(row.map(|row| row.aims_at(Target::RatioAtMost(2.0))))
}

fn growth(first: &[f64], last: &[f64]) -> Vec<f64> {
    first.iter().zip(last).map(|(first, last)| last / first).collect()
}

/// A registry with so many records, ten owners between them, and the map that would be enough to find them.
struct Crowd {
    tasks: Tasks,
    ids: Vec<TaskId>,
    lister: AgentHandle,
    map: Mutex<HashMap<String, Arc<str>>>,
}

impl Crowd {
    fn of(size: usize) -> Result<Crowd, Failure> {
        let tasks = Tasks::with_owners(10)?;
        let output = Arc::new(OutputLog::new(OutputConfig::default()).reader(Rendering::Sections));
        let mut ids = Vec::new();
        for number in 0..size {
            let owner = tasks.owner(number).ok_or("there are owners")?;
            ids.push(tasks.start_idle(owner, Some(output.clone()))?);
        }
        let lister = tasks.another("lister")?;
        for _ in 0..LISTED {
            tasks.start_idle(lister.agent(), None)?;
        }
        let map = ids.iter().map(|id| (id.to_string(), Arc::from("a record")));
        Ok(Crowd {
            map: Mutex::new(map.collect()),
            tasks,
            ids,
            lister,
        })
    }

    /// The `call`th id to be looked for, and its owner: far from the one before.
    fn wanted(&self, call: usize) -> (&TaskId, Option<&Arc<Agent>>) {
        let at = call.wrapping_mul(7_919) % self.ids.len();
        (&self.ids[at], self.tasks.owner(at))
    }

    fn ours(&self, operation: Operation) -> Result<f64, Failure> {
        let registry = &self.tasks.registry;
        let mut failed = 0;
        let took = timed_calls(CALLS, |call| {
            let (id, owner) = self.wanted(call);
            failed += usize::from(match operation {
                Operation::Get => black_box(registry.get(id, owner)).is_err(),
                Operation::Read => match registry.read(id, owner, 64_000) {
                    Ok(read) => {
                        black_box(&read.text);
                        read.claim.deliver();
                        false
                    }
                    Err(_) => true,
                },
                Operation::Kill => match registry.kill(id, owner, None) {
                    Ok(killed) => {
                        killed.claim.deliver();
                        false
                    }
                    Err(_) => true,
                },
            });
        });
        match failed {
            0 => Ok(took),
            failed => Err(format!("{failed} of {CALLS} calls failed").into()),
        }
    }

    fn floor(&self) -> f64 {
        timed_calls(CALLS, |call| {
            let (id, _) = self.wanted(call);
            let map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
            black_box(map.get(id.as_str()).cloned());
        })
    }

    fn list(&self) -> Vec<TaskSnapshot> {
        self.tasks.registry.list(Some(self.lister.agent()))
    }
}

/// Seconds that each of some calls took.
fn timed_calls(count: usize, mut call: impl FnMut(usize)) -> f64 {
    let begun = Instant::now();
    (0..count).for_each(&mut call);
    each(count, begun.elapsed())
}
