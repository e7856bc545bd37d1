//! Single steps of a disposal that the model takes together, and what is kept after it.

use std::sync::Arc;

use dsh_agent::{AgentRegistry, AgentSpec};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_tasks::{
    Kind, Outcome, TaskId, Vocabulary,
    core::{Admission, Committed, Dispatched, Ending, Facts, Ledger, Limits, Owner, Verdict},
};

const OWN: &str = "the session of an owner";
const ABOVE: &str = "the session above";

fn ledger() -> (Arc<Ledger<()>>, Owner) {
    let limits = Limits {
        per_owner: 1,
        retained_unowned: 0,
        vocabulary: Vocabulary::Task,
    };
    let spec = AgentSpec {
        id: SessionId::new(OWN),
        cwd: None,
        within: Scope::root("steps"),
    };
    let agent = AgentRegistry::new().create(spec).unwrap();
    let owner = Owner::of(agent.agent(), [SessionId::new(ABOVE)].into());
    (Ledger::new(limits, |_| {}), owner)
}

fn started(ledger: &Arc<Ledger<()>>, owner: Option<Owner>) -> TaskId {
    let reservation = ledger.reserve::<()>(owner, Admission::Limited, 0, |_| Ok(()));
    let facts = Facts {
        kind: Kind::new("t").unwrap(),
        label: "l".into(),
        output_limit_bytes: None,
    };
    match reservation.unwrap().commit(facts, (), 0) {
        Committed::Task(id) => id,
        Committed::Ending(..) | Committed::TooLate(_) => panic!("nothing is ending"),
    }
}

#[test]
fn a_disposal_goes_on_when_each_end_was_dispatched_and_not_before() {
    let (ledger, owner) = ledger();
    let ending = Ending::Owner(owner.instance);
    let id = started(&ledger, Some(owner));
    let is_over = || [ledger.is_idle(ending), ledger.is_announced(ending)];
    ledger.begin(ending);
    assert_eq!(is_over(), [false; 2]);
    ledger.settle(&id, Outcome::killed(), Verdict::Forced, 0);
    assert_eq!(is_over(), [false; 2], "its listeners were not called");
    ledger.dispatched(&id, Dispatched::Called);
    assert_eq!(is_over(), [true; 2]);
}

#[test]
fn nothing_is_kept_of_an_owner_whose_tasks_are_cleared_and_of_a_task_that_expired() {
    let (ledger, owner) = ledger();
    let ending = Ending::Owner(owner.instance);
    let kept = || ledger.look(|table| format!("{table:?}"));
    let id = started(&ledger, Some(owner));
    assert!(kept().contains(OWN) && kept().contains(ABOVE) && kept().contains("t-1"));
    ledger.begin(ending);
    ledger.settle(&id, Outcome::killed(), Verdict::Producer, 0);
    ledger.dispatched(&id, Dispatched::Over);
    assert!(ledger.shut(ending).is_empty());
    ledger.clear(ending);
    let unowned = started(&ledger, None);
    ledger.settle(&unowned, Outcome::completed(), Verdict::Producer, 0);
    ledger.dispatched(&unowned, Dispatched::Over);
    ledger.take_effects().for_each(drop);
    for name in [OWN, ABOVE, "t-1", "t-2"] {
        assert!(!kept().contains(name), "{name} in {}", kept());
    }
}
