//! Every short sequence of operations, against a model that is too simple to be wrong.

mod desk;
mod model;
mod rest;
mod wake_ups;

use dsh_llm::{ContentBlock, text_of};
use dsh_session::{Message, MessageSource};
use tokio_test::{assert_pending, assert_ready, task};

use super::{Inbox, InboxLease, Notice, NoticeHold, NoticeKey};
use model::{Model, Operation};

fn notice(key: &str, text: &str) -> Notice {
    let source = MessageSource::Plugin {
        plugin: "test".into(),
        form: "notice".into(),
        summary: text.to_owned(),
        subjects: Vec::new(),
    };
    Notice {
        key: NoticeKey::new(key),
        message: Message {
            content: vec![ContentBlock::text(text)],
            source,
        },
    }
}

fn texts(lease: &InboxLease) -> Vec<String> {
    lease
        .messages()
        .iter()
        .map(|message| text_of(&message.content))
        .collect()
}

#[test]
fn one_key_every_sequence_of_six() {
    assert_eq!(every_sequence(&["a"], 6), 22_610);
}

#[test]
fn two_keys_every_sequence_of_five() {
    assert_eq!(every_sequence(&["a", "b"], 5), 34_640);
}

/// Runs every sequence that is possible, and says how many there were.
fn every_sequence(keys: &[&'static str], length: usize) -> usize {
    let mut todo = vec![Model::default()];
    let mut run = 0;
    while let Some(model) = todo.pop() {
        if model.history.len() == length {
            run_sequence(&model.history);
            run += 1;
            continue;
        }
        todo.extend(model.possible(keys).into_iter().map(|operation| {
            let mut longer = model.clone();
            longer.apply(operation);
            longer
        }));
    }
    run
}

/// The real thing, with the handles that the sequence has made.
struct Real {
    inbox: Inbox,
    holds: Vec<(&'static str, NoticeHold)>,
    leases: Vec<InboxLease>,
    injected: usize,
}

impl Real {
    /// What the operation showed: the texts of a lease that was made or committed.
    fn apply(&mut self, operation: Operation) -> Vec<String> {
        match operation {
            Operation::Inject(key) => {
                let text = format!("{key}{}", self.injected);
                self.injected += 1;
                self.inbox.inject(notice(key, &text));
            }
            Operation::Hold(key) => self.holds.push((key, self.inbox.hold(&NoticeKey::new(key)))),
            Operation::Retract(key) => self.oldest_hold(key).retract(),
            Operation::Release(key) => drop(self.oldest_hold(key)),
            Operation::Forget(key) => self.inbox.forget(&NoticeKey::new(key)),
            Operation::Lease => {
                let lease = self.inbox.lease();
                let seen = texts(&lease);
                assert_eq!(lease.is_empty(), seen.is_empty());
                self.leases.push(lease);
                return seen;
            }
            Operation::Commit(index) => {
                let lease = self.leases.remove(index);
                let told = texts(&lease);
                lease.commit();
                return told;
            }
            Operation::DropLease(index) => drop(self.leases.remove(index)),
        }
        Vec::new()
    }

    fn oldest_hold(&mut self, key: &str) -> NoticeHold {
        let index = self.holds.iter().position(|(held, _)| *held == key).unwrap();
        self.holds.remove(index).1
    }
}

fn run_sequence(sequence: &[Operation]) {
    let mut real = Real {
        inbox: Inbox::new(),
        holds: Vec::new(),
        leases: Vec::new(),
        injected: 0,
    };
    let mut model = Model::default();
    let watched = Inbox {
        shared: real.inbox.shared.clone(),
    };
    // Somebody waits whenever there is nothing to see.
    let mut waiter = Some(task::spawn(watched.arrived()));
    assert_pending!(waiter.as_mut().unwrap().poll());

    let mut step = |model: &mut Model, operation| {
        let context = || format!("after {operation:?} in {sequence:?}");
        assert_eq!(real.apply(operation), model.apply(operation), "{}", context());
        let visible = model.visible().len();
        assert_eq!(real.inbox.pending(), visible, "{}", context());
        assert_eq!(
            real.inbox.shared.lock().notices.known_keys(),
            model.known_keys(),
            "{}",
            context()
        );
        match (waiter.take(), visible) {
            (Some(mut waiting), 0) => {
                assert_pending!(waiting.poll(), "{}", context());
                waiter = Some(waiting);
            }
            (Some(mut waiting), _) => {
                assert!(waiting.is_woken(), "{}", context());
                assert_ready!(waiting.poll(), "{}", context());
            }
            (None, 0) => {
                let mut waiting = task::spawn(watched.arrived());
                assert_pending!(waiting.poll(), "{}", context());
                waiter = Some(waiting);
            }
            (None, _) => assert_ready!(task::spawn(watched.arrived()).poll(), "{}", context()),
        }
    };
    for &operation in sequence {
        step(&mut model, operation);
    }
    // Whatever is still under way is given up; then nothing is missing and nothing is there twice.
    for operation in model.endings() {
        step(&mut model, operation);
    }
    step(&mut model, Operation::Lease);
    step(&mut model, Operation::Commit(0));
    assert!(model.is_at_rest(), "{sequence:?}");
}
