//! Every interleaving of the core's races, at its own lock.
//!
//! A model returns whether what must hold held. `every` runs it in all interleavings and wants that always; `some_fail`
//! wants a counter-example, from a model of the order that looks right and is not. Run with
//! `RUSTFLAGS="--cfg dsh_loom" cargo test -p dsh-tasks --test loom --target-dir target/loom --release`.
#![cfg(dsh_loom)]
#![expect(clippy::unwrap_used, reason = "a model that cannot go on fails")]

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use dsh_agent::{AgentRegistry, AgentSpec, InstanceId};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_tasks::{
    CancelRequest, Cause, Kind, Outcome, TaskId, TaskStatus, Vocabulary,
    core::{Committed, Effect, Ending, Facts, Killed, Ledger, Limits, Mutex, Owner, Told, Verdict},
};
use loom::{sync::atomic::AtomicBool, thread};

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
    Ledger::new(limits, || {})
}

fn facts() -> Facts {
    Facts {
        kind: Kind::new("t").unwrap(),
        label: "l".to_owned(),
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

fn asked() -> CancelRequest {
    CancelRequest {
        cause: Cause::Caller,
        reason: None,
    }
}

fn status(tasks: &Tasks, id: &TaskId) -> TaskStatus {
    tasks.look(|table| table.record(id).unwrap().snapshot().status)
}

// Settle against kill.

#[test]
fn settle_and_a_delivered_kill() {
    every(|| {
        let (tasks, id) = one_task();
        let settler = settler(&tasks, &id);
        let killed = tasks
            .kill::<()>(&id, None, &asked(), |()| Ok(()))
            .unwrap()
            .unwrap();
        let requested = match killed {
            Killed::Requested { claim, .. } => {
                claim.deliver();
                true
            }
            Killed::AlreadyFinished(opened) => {
                opened.claim.deliver();
                false
            }
        };
        settler.join().unwrap();
        let ends = ends(&tasks);
        // Who was told that the end was asked for needs no notice of it.
        status(&tasks, &id) == TaskStatus::Killed && ends.len() == 1 && (!requested || ends[0])
    });
}

#[test]
fn settle_and_a_kill_that_claims_after_its_hook_is_refuted() {
    some_fail(|| {
        let (tasks, id) = one_task();
        let settler = settler(&tasks, &id);
        let live = tasks.look(|table| !table.record(&id).unwrap().is_terminal());
        // The hook is called here, and only then is the kill claimed.
        tasks.change(|table| table.record(&id).unwrap().claim(Told::Kill));
        tasks.change(|table| table.end_claim(&id, |record| record.deliver(Told::Kill)));
        settler.join().unwrap();
        !live || ends(&tasks) == [true]
    });
}

#[test]
fn settle_and_a_kill_whose_hook_fails_or_whose_answer_is_lost() {
    every(|| {
        let (tasks, id) = one_task();
        let settler = settler(&tasks, &id);
        let failed = tasks.kill(&id, None, &asked(), |()| Err(())).unwrap();
        drop(failed);
        let lost = tasks.kill::<()>(&id, None, &asked(), |()| Ok(())).unwrap();
        drop(lost);
        settler.join().unwrap();
        status(&tasks, &id) == TaskStatus::Killed && ends(&tasks) == [false]
    });
}

#[test]
fn settle_and_a_kill_that_writes_stopping_blindly_is_refuted() {
    some_fail(|| {
        let status = Arc::new(Mutex::new("running"));
        let end = status.clone();
        let settler = thread::spawn(move || *end.lock() = "killed");
        let live = *status.lock() == "running";
        if live {
            *status.lock() = "stopping";
        }
        settler.join().unwrap();
        *status.lock() == "killed"
    });
}

#[test]
fn two_ends_and_the_first_wins() {
    every(|| {
        let (tasks, id) = one_task();
        let (other, same) = (tasks.clone(), id.clone());
        let forced = thread::spawn(move || other.settle(&same, Outcome::failed(), Verdict::Forced, 0));
        let mine = tasks.settle(&id, Outcome::completed(), Verdict::Producer, 0);
        let forced = forced.join().unwrap();
        let wanted = if mine {
            TaskStatus::Completed
        } else {
            TaskStatus::Failed
        };
        mine != forced && status(&tasks, &id) == wanted && ends(&tasks).len() == 1
    });
}

// Settle against a wait that is dropped.

#[test]
fn settle_and_a_dropped_wait() {
    every(|| {
        let (tasks, id) = one_task();
        let settler = settler(&tasks, &id);
        let wait = tasks.open_waiting(&id, None).unwrap();
        drop(wait);
        settler.join().unwrap();
        ends(&tasks) == [false]
    });
}

#[test]
fn settle_and_two_waits_of_which_one_is_told() {
    every(|| {
        let (tasks, id) = one_task();
        let told = tasks.open_waiting(&id, None).unwrap().claim;
        let lost = tasks.open_waiting(&id, None).unwrap().claim;
        let settler = settler(&tasks, &id);
        let dropper = thread::spawn(move || drop(lost));
        let (snapshot, claim) = told.resolve();
        let saw_end = snapshot.unwrap().status.is_terminal();
        claim.deliver();
        settler.join().unwrap();
        dropper.join().unwrap();
        // The end was told, or it is news: never neither, never both.
        ends(&tasks) == [saw_end]
    });
}

#[test]
fn settle_that_reports_for_whoever_waits_is_refuted() {
    some_fail(|| {
        #[derive(Default)]
        struct Naive {
            waiters: usize,
            reported: Option<bool>,
        }
        let record = Arc::new(Mutex::new(Naive::default()));
        let end = record.clone();
        let settler = thread::spawn(move || {
            let mut record = end.lock();
            record.reported = Some(record.waiters > 0);
        });
        record.lock().waiters += 1;
        // The wait is dropped: nobody tells anybody.
        record.lock().waiters -= 1;
        settler.join().unwrap();
        record.lock().reported == Some(false)
    });
}

// Settle against a read.

#[test]
fn settle_and_a_delivered_read() {
    every(|| {
        let (tasks, id) = one_task();
        let settler = settler(&tasks, &id);
        let read = tasks.open(&id, None).unwrap();
        let saw_end = read.snapshot.status.is_terminal();
        read.claim.deliver();
        settler.join().unwrap();
        let told = tasks.look(|table| table.record(&id).unwrap().is_told());
        // A read of a live task tells nobody of the end, whatever happened meanwhile.
        told == saw_end && ends(&tasks) == [false]
    });
}

#[test]
fn settle_and_a_read_that_claims_the_end_of_a_live_task_is_refuted() {
    some_fail(|| {
        let (tasks, id) = one_task();
        let settler = settler(&tasks, &id);
        let read = tasks.open_waiting(&id, None).unwrap();
        let saw_end = read.snapshot.status.is_terminal();
        read.claim.deliver();
        settler.join().unwrap();
        saw_end || ends(&tasks) == [false]
    });
}

#[test]
fn settle_and_a_read_and_a_wait_abandoned_together() {
    every(|| {
        let (tasks, id) = one_task();
        let wait = tasks.open_waiting(&id, None).unwrap();
        let settler = settler(&tasks, &id);
        let other = tasks.clone();
        let same = id.clone();
        let reader = thread::spawn(move || drop(other.open(&same, None).unwrap()));
        drop(wait);
        settler.join().unwrap();
        reader.join().unwrap();
        ends(&tasks) == [false]
    });
}

// Two readers of one cursor.

const LENGTH: u64 = 8;

/// Reads what is unread in turn with others, as the service does; hands out the claim and what was read.
fn read(tasks: &Tasks, id: &TaskId, turn: &Mutex<()>) -> (dsh_tasks::core::Claim<()>, Vec<u64>) {
    let _turn = turn.lock();
    read_out_of_turn(tasks, id)
}

fn read_out_of_turn(tasks: &Tasks, id: &TaskId) -> (dsh_tasks::core::Claim<()>, Vec<u64>) {
    let opened = tasks.open(id, None).unwrap();
    let (mut claim, mut bytes) = (opened.claim, Vec::new());
    for stretch in opened.unread {
        let range = stretch.start..stretch.end.unwrap_or(LENGTH);
        bytes.extend(range.clone());
        claim.lease(range);
    }
    (claim, bytes)
}

fn two_readers(take: fn(&Tasks, &TaskId, &Mutex<()>) -> (dsh_tasks::core::Claim<()>, Vec<u64>)) -> bool {
    let (tasks, id) = one_task();
    let turn = Arc::new(Mutex::new(()));
    let (other, same, others) = (tasks.clone(), id.clone(), turn.clone());
    let losing = thread::spawn(move || drop(take(&other, &same, &others)));
    let (claim, mut got) = take(&tasks, &id, &turn);
    claim.deliver();
    losing.join().unwrap();
    let (claim, rest) = take(&tasks, &id, &turn);
    claim.deliver();
    got.extend(rest);
    got.sort_unstable();
    got == (0..LENGTH).collect::<Vec<_>>()
}

#[test]
fn two_readers_of_which_one_loses_its_answer() {
    every(|| two_readers(read));
}

#[test]
fn two_readers_out_of_turn_are_refuted() {
    some_fail(|| two_readers(|tasks, id, _| read_out_of_turn(tasks, id)));
}

// Start against disposal.

#[test]
fn start_and_the_end_of_the_registry() {
    every(|| {
        let tasks = tasks(10);
        let starter = starter(&tasks, None, || Ok(()));
        let (_, live) = tasks.begin(Ending::Service);
        let cancelled_by_start = starter.join().unwrap();
        let records = tasks.look(|table| table.records().count());
        records == live.len() + cancelled_by_start
    });
}

#[test]
fn start_that_checks_and_then_inserts_is_refuted() {
    some_fail(|| {
        let tasks = tasks(10);
        let other = tasks.clone();
        let starter = thread::spawn(move || {
            if !other.look(|table| table.is_closing()) {
                insert(&other);
            }
        });
        let (_, live) = tasks.begin(Ending::Service);
        starter.join().unwrap();
        let records = tasks.look(|table| table.records().count());
        records == live.len()
    });
}

#[test]
fn start_and_the_end_of_its_owner() {
    every(|| {
        let tasks = tasks(10);
        let closing = Arc::new(AtomicBool::new(false));
        let seen = closing.clone();
        let refuse = move || match seen.load(loom::sync::atomic::Ordering::SeqCst) {
            true => Err(()),
            false => Ok(()),
        };
        let starter = starter(&tasks, Some(owner()), refuse);
        closing.store(true, loom::sync::atomic::Ordering::SeqCst);
        // A start that saw the scope open attached the cleanup under the core's lock, so this look sees it.
        let attached = tasks.look(|table| table.is_attached(owner().instance));
        let live = if attached {
            tasks.begin(Ending::Owner(owner().instance)).1.len()
        } else {
            0
        };
        let cancelled_by_start = starter.join().unwrap();
        let records = tasks.look(|table| table.records().count());
        records == live + cancelled_by_start
    });
}

#[test]
fn start_is_waited_for_by_the_disposal_that_began_meanwhile() {
    every(|| {
        let tasks = tasks(10);
        let reservation = tasks.reserve::<()>(None, 0, |_| Ok(())).unwrap();
        let other = tasks.clone();
        let disposal = thread::spawn(move || {
            other.begin(Ending::Service);
            other.is_idle(Ending::Service)
        });
        reservation.commit(facts(), (), 0);
        // Idle would mean that the disposal ends without the task, which has not ended.
        !disposal.join().unwrap()
    });
}

// Nested start against admission.

#[test]
fn nested_start_and_another_one_at_a_limit_of_one() {
    every(|| {
        let tasks = tasks(1);
        let other = starter(&tasks, None, || Ok(()));
        if let Ok(outer) = tasks.reserve::<()>(None, 0, |_| Ok(())) {
            let nested = tasks.reserve::<()>(None, 0, |_| Ok(())).is_err();
            outer.commit(facts(), (), 0);
            assert!(nested, "a start under way counts");
        }
        other.join().unwrap();
        tasks.look(|table| table.records().count()) == 1
    });
}

#[test]
fn admission_without_a_reservation_is_refuted() {
    some_fail(|| {
        let tasks = tasks(1);
        let start = |tasks: &Tasks| {
            let admitted = tasks.look(|table| table.records().count()) < 1;
            // `run` is called here.
            if admitted {
                insert(tasks);
            }
        };
        let other = tasks.clone();
        let starter = thread::spawn(move || start(&other));
        start(&tasks);
        starter.join().unwrap();
        tasks.look(|table| table.records().count()) == 1
    });
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

/// Starts a task in a thread of its own; how many tasks it was told to cancel at once.
fn starter(
    tasks: &Tasks,
    owner: Option<Owner>,
    attach: impl Fn() -> Result<(), ()> + 'static,
) -> thread::JoinHandle<usize> {
    let tasks = tasks.clone();
    thread::spawn(move || {
        let Ok(reservation) = tasks.reserve(owner, 0, |_| attach()) else {
            return 0;
        };
        match reservation.commit(facts(), (), 0) {
            Committed::Ending(..) => 1,
            Committed::Task(_) | Committed::TooLate(_) => 0,
        }
    })
}

/// An owner, the same in every interleaving.
fn owner() -> Owner {
    static INSTANCE: OnceLock<InstanceId> = OnceLock::new();
    let session = SessionId::new("a");
    let instance = *INSTANCE.get_or_init(|| {
        let spec = AgentSpec {
            id: SessionId::new("a"),
            cwd: None,
            within: Scope::root("loom"),
        };
        AgentRegistry::new().create(spec).unwrap().agent().instance()
    });
    Owner { instance, session }
}
