//! Two readers of the one consuming cursor.

use std::sync::Arc;

use dsh_tasks::{
    TaskId,
    core::{Claim, Mutex},
};
use loom::thread;

use crate::{Tasks, every, one_task, some_fail};

const LENGTH: u64 = 8;

/// Reads what is unread in turn with others, as the service does; hands out the claim and what was read.
fn read(tasks: &Tasks, id: &TaskId, turn: &Mutex<()>) -> (Claim<()>, Vec<u64>) {
    let _turn = turn.lock();
    read_out_of_turn(tasks, id)
}

fn read_out_of_turn(tasks: &Tasks, id: &TaskId) -> (Claim<()>, Vec<u64>) {
    let reading = tasks.open(id, None).unwrap();
    let (mut claim, mut bytes) = (reading.opened.claim, Vec::new());
    for stretch in reading.unread {
        let range = stretch.start..stretch.end.unwrap_or(LENGTH);
        bytes.extend(range.clone());
        claim.lease(range);
    }
    (claim, bytes)
}

fn two_readers(take: fn(&Tasks, &TaskId, &Mutex<()>) -> (Claim<()>, Vec<u64>)) -> bool {
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

/// A range is given back while the one behind it is being read.
fn read_across_an_abandonment(take_before: fn(&mut Claim<()>, u64)) -> bool {
    let (tasks, id) = one_task();
    let mut first = tasks.open(&id, None).unwrap().opened.claim;
    first.lease(0..LENGTH / 2);
    let losing = thread::spawn(move || drop(first));
    let reading = tasks.open(&id, None).unwrap();
    let (mut claim, mut got) = (reading.opened.claim, Vec::new());
    for stretch in reading.unread {
        let end = stretch.end.unwrap_or(LENGTH);
        got.extend(stretch.start..end);
        take_before(&mut claim, stretch.start);
        claim.lease(stretch.start..end);
    }
    claim.deliver();
    losing.join().unwrap();
    let (claim, rest) = read_out_of_turn(&tasks, &id);
    claim.deliver();
    got.extend(rest);
    got.sort_unstable();
    got == (0..LENGTH).collect::<Vec<_>>()
}

#[test]
fn a_range_abandoned_while_the_one_behind_it_is_read() {
    every(|| read_across_an_abandonment(|_, _| {}));
}

#[test]
fn a_lease_that_takes_all_up_to_its_end_is_refuted() {
    // What lies before the range counts as taken by somebody, as it was when the range was looked up.
    some_fail(|| read_across_an_abandonment(|claim, start| claim.lease(0..start)));
}
