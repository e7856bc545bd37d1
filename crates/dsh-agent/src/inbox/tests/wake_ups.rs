//! Who is woken, and when.

use tokio_test::{assert_pending, assert_ready, task};

use super::{notice, texts};
use crate::{Inbox, NoticeKey};

#[test]
fn a_notice_wakes_all_who_wait_and_each_looks_for_itself() {
    let inbox = Inbox::new();
    let (mut one, mut two) = (task::spawn(inbox.arrived()), task::spawn(inbox.arrived()));
    assert_pending!(one.poll());
    assert_pending!(two.poll());
    inbox.inject(notice("a", "a"));
    assert!(one.is_woken() && two.is_woken());
    assert_ready!(one.poll());
    inbox.lease().commit();
    assert_pending!(two.poll(), "somebody else was faster");
    inbox.inject(notice("b", "b"));
    assert!(two.is_woken());
    assert_ready!(two.poll());
}

#[test]
fn a_hidden_notice_wakes_nobody_until_it_shows() {
    let inbox = Inbox::new();
    let mut waiting = task::spawn(inbox.arrived());
    assert_pending!(waiting.poll());
    let (first, second) = (inbox.hold(&NoticeKey::new("a")), inbox.hold(&NoticeKey::new("a")));
    inbox.inject(notice("a", "a"));
    assert!(!waiting.is_woken());
    drop(first);
    assert!(!waiting.is_woken(), "the other hold is in force");
    drop(second);
    assert!(waiting.is_woken());
    assert_ready!(waiting.poll());
}

#[test]
fn a_lease_that_is_dropped_wakes_and_one_that_is_committed_does_not() {
    let inbox = Inbox::new();
    inbox.inject(notice("a", "a"));
    let lease = inbox.lease();
    let mut waiting = task::spawn(inbox.arrived());
    assert_pending!(waiting.poll());
    drop(lease);
    assert!(waiting.is_woken());
    let lease = inbox.lease();
    assert_pending!(waiting.poll());
    lease.commit();
    assert!(!waiting.is_woken());
}

#[test]
fn a_refused_or_retracted_notice_wakes_nobody() {
    let inbox = Inbox::new();
    let mut waiting = task::spawn(inbox.arrived());
    assert_pending!(waiting.poll());
    inbox.hold(&NoticeKey::new("early")).retract();
    inbox.inject(notice("early", "refused"));
    let hold = inbox.hold(&NoticeKey::new("late"));
    inbox.inject(notice("late", "retracted"));
    hold.retract();
    assert!(!waiting.is_woken());
    assert_pending!(waiting.poll());
}

#[test]
fn what_comes_back_has_its_old_place() {
    let inbox = Inbox::new();
    inbox.inject(notice("a", "a"));
    let hold = inbox.hold(&NoticeKey::new("a"));
    inbox.inject(notice("b", "b"));
    let lease = inbox.lease();
    assert_eq!(texts(&lease), ["b"]);
    inbox.inject(notice("c", "c"));
    drop(hold);
    drop(lease);
    assert_eq!(texts(&inbox.lease()), ["a", "b", "c"]);
}

#[test]
fn handles_outlive_the_inbox_and_move_between_threads() {
    let inbox = Inbox::new();
    inbox.inject(notice("a", "a"));
    let (lease, hold) = (inbox.lease(), inbox.hold(&NoticeKey::new("a")));
    drop(inbox);
    std::thread::spawn(move || (drop(lease), hold.retract()))
        .join()
        .unwrap();
}

#[test]
fn notices_injected_while_others_lease_are_told_once_each() {
    let inbox = Inbox::new();
    let told = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for sender in 0..2 {
            let inbox = &inbox;
            threads.spawn(move || {
                for number in 0..200 {
                    inbox.inject(notice(&format!("{sender}"), &format!("{sender}-{number:03}")));
                }
            });
        }
        for reader in 0..2 {
            let (inbox, told) = (&inbox, &told);
            threads.spawn(move || {
                let mut turn = reader;
                while told.lock().unwrap().len() < 400 {
                    let lease = inbox.lease();
                    turn += 1;
                    // Every other one is given up.
                    if turn % 2 == 0 {
                        told.lock().unwrap().extend(texts(&lease));
                        lease.commit();
                    }
                    std::thread::yield_now();
                }
            });
        }
    });
    let mut told = told.into_inner().unwrap();
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 400);
}
