//! A start against the end of its owner, the end of the registry, and another start.

use std::sync::{Arc, OnceLock};

use dsh_agent::{AgentRegistry, AgentSpec, InstanceId};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_tasks::core::{Admission, Committed, Ending, Owner};
use loom::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::{Tasks, every, facts, insert, some_fail, tasks};

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
        let refuse = move || match seen.load(Ordering::SeqCst) {
            true => Err(()),
            false => Ok(()),
        };
        let starter = starter(&tasks, Some(owner()), refuse);
        closing.store(true, Ordering::SeqCst);
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
        let reservation = tasks
            .reserve::<()>(None, Admission::Limited, 0, |_| Ok(()))
            .unwrap();
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
        if let Ok(outer) = tasks.reserve::<()>(None, Admission::Limited, 0, |_| Ok(())) {
            let nested = tasks
                .reserve::<()>(None, Admission::Limited, 0, |_| Ok(()))
                .is_err();
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

/// Starts a task in a thread of its own; how many tasks it was told to cancel at once.
fn starter(
    tasks: &Tasks,
    owner: Option<Owner>,
    attach: impl Fn() -> Result<(), ()> + 'static,
) -> thread::JoinHandle<usize> {
    let tasks = tasks.clone();
    thread::spawn(move || {
        let Ok(reservation) = tasks.reserve(owner, Admission::Limited, 0, |_| attach()) else {
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
    Owner {
        instance,
        session,
        above: Arc::new([]),
    }
}
