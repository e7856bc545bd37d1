//! An end against everything that may be told of it at the same time.

use std::sync::Arc;

use dsh_tasks::{
    Outcome, TaskId, TaskStatus,
    core::{Killed, Mutex, Told, Verdict},
};
use loom::thread;

use crate::{Tasks, ends, every, one_task, settler, some_fail};

// Settle against kill.

#[test]
fn settle_and_a_delivered_kill() {
    every(|| {
        let (tasks, id) = one_task();
        let settler = settler(&tasks, &id);
        let killed = tasks
            .kill::<()>(&id, None, None, |(), _| Ok(()))
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
        let failed = tasks.kill(&id, None, None, |(), _| Err(())).unwrap();
        drop(failed);
        let lost = tasks.kill::<()>(&id, None, None, |(), _| Ok(())).unwrap();
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
        let read = tasks.open(&id, None).unwrap().opened;
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

fn status(tasks: &Tasks, id: &TaskId) -> TaskStatus {
    tasks.look(|table| table.record(id).unwrap().snapshot().status)
}
