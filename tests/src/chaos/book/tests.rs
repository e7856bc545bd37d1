//! The book finds what must not be in it.

use super::{Book, Call};
use crate::Reply;

const DONE: &str = "[status: completed, exit code: 0]";

fn reply(texts: &[&str]) -> Reply {
    Reply {
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        is_error: false,
    }
}

/// A client whose first call has started the task `bash-1`.
fn started() -> Book {
    let mut book = Book::default();
    book.sends(0, Call::Start("c000".to_owned()));
    book.answered(0, reply(&["started background task bash-1"]));
    book
}

fn told(book: &mut Book, id: i64, call: Call, texts: &[&str]) {
    book.sends(id, call);
    book.answered(id, reply(texts));
}

fn read() -> Call {
    Call::Read("bash-1".to_owned())
}

fn notice(status: &str) -> String {
    format!(
        "\nbackground task bash-1 (bash: : c000; true) finished {status}. Read its output with task_output.\nlast output:\n> x"
    )
}

#[test]
fn an_end_that_only_a_resource_shows_is_not_told() {
    let mut book = started();
    told(&mut book, 1, Call::Look("bash-1".to_owned()), &[DONE]);
    assert_eq!(book.untold(), ["bash-1"]);
    told(&mut book, 2, Call::List, &["", &notice(DONE)]);
    assert!(book.untold().is_empty() && book.faults.is_empty(), "{book:?}");
}

#[test]
fn a_notice_after_a_read_and_a_second_one_are_found() {
    let mut book = started();
    told(&mut book, 1, read(), &[&format!("(no new output)\n{DONE}")]);
    told(&mut book, 2, Call::List, &["", &notice(DONE)]);
    assert!(book.faults[0].contains("had been told of"), "{:?}", book.faults);
    let mut book = started();
    told(&mut book, 1, Call::List, &["", &notice(DONE)]);
    told(&mut book, 2, Call::List, &["", &notice(DONE)]);
    assert!(book.faults[0].contains("a second notice"), "{:?}", book.faults);
}

#[test]
fn a_notice_beside_the_read_that_tells_the_same_is_found() {
    let mut book = started();
    told(
        &mut book,
        1,
        read(),
        &[&format!("(no new output)\n{DONE}"), &notice(DONE)],
    );
    assert_eq!(book.faults.len(), 1);
}

#[test]
fn a_kill_is_news_only_when_it_failed() {
    let asked = "requested cancellation of task bash-1";
    for (status, faults) in [
        ("[status: killed, signal: SIGTERM]", 1),
        ("[status: failed, guard lost]", 0),
    ] {
        let mut book = started();
        told(&mut book, 1, Call::Kill("bash-1".to_owned()), &[asked]);
        told(&mut book, 2, Call::List, &["", &notice(status)]);
        assert_eq!(book.faults.len(), faults, "{:?}", book.faults);
    }
}

#[test]
fn an_answer_to_a_cancelled_call_forbids_nothing_and_proves_nothing() {
    let mut book = started();
    book.sends(1, read());
    book.cancels(1);
    assert!(book.open().is_empty());
    book.answered(1, reply(&[&format!("(no new output)\n{DONE}")]));
    told(&mut book, 2, Call::List, &["", &notice(DONE)]);
    assert!(book.untold().is_empty() && book.faults.is_empty(), "{book:?}");
}

#[test]
fn two_ends_of_one_task_are_found() {
    let mut book = started();
    told(&mut book, 1, read(), &[&format!("(no new output)\n{DONE}")]);
    told(
        &mut book,
        2,
        read(),
        &["(no new output)\n[status: killed, signal: SIGTERM]"],
    );
    assert!(book.faults[0].contains("ended as"), "{:?}", book.faults);
}

#[test]
fn output_and_tasks_of_others_are_found() {
    let mut book = started();
    told(&mut book, 1, read(), &["od000-000000000\n[status: running]"]);
    assert_eq!(book.faults.len(), 1, "{:?}", book.faults);
    told(
        &mut book,
        2,
        Call::List,
        &["bash-2 [bash] running — : d000; true"],
    );
    assert_eq!(book.faults.len(), 2, "{:?}", book.faults);
}

#[test]
fn an_answer_that_nobody_waits_for_is_found() {
    let mut book = started();
    book.answered(0, reply(&["again"]));
    assert_eq!(book.faults.len(), 1);
}
