//! Every interleaving of the core's races, at its own lock.
//!
//! A model returns whether what must hold held. `every` runs it in all interleavings and wants that always; `some_fail`
//! wants a counter-example, from a model of the order that looks right and is not. Run with
//! `RUSTFLAGS="--cfg dsh_loom" cargo test -p dsh-tasks --test loom --target-dir target/loom --release`.
#![cfg(dsh_loom)]
#![expect(clippy::unwrap_used, reason = "a model that cannot go on fails")]

mod ends;
mod readers;
mod starts;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dsh_tasks::{
    Kind, Outcome, TaskId, Vocabulary,
    core::{Effect, Facts, Ledger, Limits, Verdict},
};
use loom::thread;

type Tasks = Arc<Ledger<()>>;

fn every(model: fn() -> bool) {
    let (runs, failures) = explored(model);
    assert!(runs > 1, "one interleaving proves nothing");
    assert_eq!(failures, 0, "of {runs} interleavings");
}

fn some_fail(model: fn() -> bool) {
    let (runs, failures) = explored(model);
    assert!(failures > 0, "the naive order held in all {runs} interleavings");
}

fn explored(model: fn() -> bool) -> (usize, usize) {
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let seen = counts.clone();
    loom::model(move || {
        let failed = !model();
        seen.0.fetch_add(1, Ordering::Relaxed);
        seen.1.fetch_add(usize::from(failed), Ordering::Relaxed);
    });
    (counts.0.load(Ordering::Relaxed), counts.1.load(Ordering::Relaxed))
}

fn tasks(limit: u64) -> Tasks {
    let limits = Limits {
        per_owner: limit,
        retained_unowned: 100,
        vocabulary: Vocabulary::Task,
    };
    Ledger::new(limits, |_| {})
}

fn facts() -> Facts {
    Facts {
        kind: Kind::new("t").unwrap(),
        label: "l".into(),
        output_limit_bytes: None,
    }
}

fn insert(tasks: &Tasks) -> TaskId {
    tasks.look(|table| table.insert(None, facts(), (), 0))
}

fn settle(tasks: &Tasks, id: &TaskId) {
    tasks.settle(id, Outcome::killed(), Verdict::Producer, 0);
}

/// Whether each done event so far said that the end was reported.
fn ends(tasks: &Tasks) -> Vec<bool> {
    let done = |effect| match effect {
        Effect::Done { snapshot, .. } => Some(snapshot.reported),
        Effect::Settled { .. } | Effect::Changed(_) | Effect::Dropped(()) => None,
    };
    tasks.take_effects().filter_map(done).collect()
}

fn one_task() -> (Tasks, TaskId) {
    let tasks = tasks(10);
    let id = insert(&tasks);
    (tasks, id)
}

fn settler(tasks: &Tasks, id: &TaskId) -> thread::JoinHandle<()> {
    let (tasks, id) = (tasks.clone(), id.clone());
    thread::spawn(move || settle(&tasks, &id))
}
