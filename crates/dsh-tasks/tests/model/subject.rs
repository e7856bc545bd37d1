//! The core, driven as the service drives it, one step at a time.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use dsh_agent::{AgentRegistry, AgentSpec, InstanceId};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_tasks::{
    CancelRequest, Cause, Kind, Outcome, Survivor, TaskId, Vocabulary,
    core::{
        Admission, Claim, Committed, Dispatched, Effect, Ending, Facts, Killed, Ledger, Limits, Owner,
        Reading, Record, Standing, Verdict,
    },
};
use proptest_state_machine::StateMachineTest;

use crate::reference::{Byte, CHILD, End, LIMIT, Look, NOBODY, OWNERS, Step, World};

pub(crate) struct Subject {
    ledger: Arc<Ledger<()>>,
    ids: Vec<TaskId>,
    lengths: Vec<u64>,
    claims: Vec<Option<Claim<()>>>,
    gone: [bool; OWNERS],
    /// What the done events of each task said.
    done: HashMap<TaskId, Vec<bool>>,
    settled: HashMap<TaskId, usize>,
    now: u64,
}

impl StateMachineTest for Subject {
    type SystemUnderTest = Self;
    type Reference = World;

    fn init_test(_: &World) -> Self {
        let limits = Limits {
            per_owner: LIMIT as u64,
            retained_unowned: usize::MAX,
            vocabulary: Vocabulary::Task,
        };
        Self {
            ledger: Ledger::new(limits, |_| {}),
            ids: Vec::new(),
            lengths: Vec::new(),
            claims: Vec::new(),
            gone: [false; OWNERS],
            done: HashMap::new(),
            settled: HashMap::new(),
            now: 0,
        }
    }

    fn apply(mut subject: Self, _: &World, step: Step) -> Self {
        subject.now += 1;
        subject.take(step);
        subject.dispatch();
        subject
    }

    fn check_invariants(subject: &Self, world: &World) {
        for (at, task) in world.tasks.iter().enumerate() {
            let id = &subject.ids[at];
            let done = subject.done.get(id).cloned().unwrap_or_default();
            assert_eq!(done, Vec::from_iter(task.announced), "done events of {id}");
            let settled = subject.settled.get(id).copied().unwrap_or(0);
            assert_eq!(
                settled,
                usize::from(task.end.is_some()),
                "releases of waits for {id}"
            );
            subject.check_record(world, at);
        }
        assert_eq!(subject.ids.len(), world.tasks.len(), "admission");
        for owner in 0..OWNERS {
            let used = subject.ledger.look(|table| table.used(instance(owner)));
            assert_eq!(used as usize, world.used(owner), "slots of owner {owner}");
            subject.check_visible(world, owner);
        }
    }
}

impl Subject {
    fn take(&mut self, step: Step) {
        match step {
            Step::Start(owner) => self.start(owner, Admission::Limited),
            Step::Adopt(owner) => self.start(owner, Admission::Unrefusable),
            Step::Settle(task, end) => {
                let id = self.ids[task].clone();
                // By a clock that went back.
                self.ledger.settle(&id, outcome(end), Verdict::Producer, 0);
            }
            Step::Write(task, n) => self.lengths[task] += n as u64,
            Step::Read(task) => self.read(task, None),
            Step::ReadAcross(at) => {
                let claim = self.claims[at].take().unwrap();
                let task = self.ids.iter().position(|id| id == claim.id()).unwrap();
                self.read(task, Some(claim));
            }
            Step::Wait(task) => {
                let id = self.ids[task].clone();
                let caller = self.caller(&id);
                let opened = self.ledger.open_waiting(&id, caller.as_ref()).unwrap();
                self.claims.push(Some(opened.claim));
            }
            Step::Resolve(at) => {
                let (_, claim) = self.claims[at].take().unwrap().resolve();
                self.claims[at] = Some(claim);
            }
            Step::Kill(task, works) => self.kill(task, works),
            Step::LookOn(task, look) => self.look_on(task, look),
            Step::Deliver(at) => {
                self.claims[at].take().unwrap().deliver();
            }
            Step::Abandon(at) => drop(self.claims[at].take()),
            Step::EndOwner(owner) => {
                self.gone[owner] = true;
                self.end(Ending::Owner(instance(owner).unwrap()));
            }
            Step::Close => self.end(Ending::Service),
            Step::Clear(owner) => {
                let ending = Ending::Owner(instance(owner).unwrap());
                assert!(self.ledger.is_idle(ending));
                assert!(self.ledger.shut(ending).is_empty());
                self.ledger.clear(ending);
            }
        }
    }

    fn start(&mut self, owner: usize, admission: Admission) {
        let attach = |_| if self.gone[owner] { Err(()) } else { Ok(()) };
        let Ok(reservation) = self.ledger.reserve(owner_of(owner), admission, self.now, attach) else {
            return;
        };
        let facts = Facts {
            kind: Kind::new("t").unwrap(),
            label: "l".into(),
            output_limit_bytes: None,
        };
        let Committed::Task(id) = reservation.commit(facts, (), self.now) else {
            panic!("a disposal began within one step");
        };
        self.ids.push(id);
        self.lengths.push(0);
    }

    fn read(&mut self, task: usize, lost: Option<Claim<()>>) {
        let id = self.ids[task].clone();
        let caller = self.caller(&id);
        let reading = self.ledger.open(&id, caller.as_ref()).unwrap();
        let mut claim = reading.opened.claim;
        drop(lost);
        for stretch in reading.unread {
            claim.lease(stretch.start..stretch.end.unwrap_or(self.lengths[task]));
        }
        self.claims.push(Some(claim));
    }

    fn kill(&mut self, task: usize, works: bool) {
        let id = self.ids[task].clone();
        let caller = self.caller(&id);
        let hook = |(): &(), request: &CancelRequest| {
            assert_eq!(request.cause, Cause::Caller);
            if works { Ok(()) } else { Err(()) }
        };
        match self.ledger.kill(&id, caller.as_ref(), None, hook).unwrap() {
            Ok(Killed::Requested { claim, .. }) => self.claims.push(Some(claim)),
            Ok(Killed::AlreadyFinished(opened)) => self.claims.push(Some(opened.claim)),
            Err(()) => {}
        }
    }

    /// The world says that nothing comes of this but the kill itself.
    fn look_on(&mut self, task: usize, look: Look) {
        let (id, above) = (self.ids[task].clone(), Some(SessionId::new("a")));
        let (claim, delivered) = match look {
            Look::Read(delivered) => {
                let Reading { opened, unread, .. } = self.ledger.open(&id, above.as_ref()).unwrap();
                assert_eq!(
                    (opened.standing, unread[0].start, unread[0].end),
                    (Standing::Above, 0, None)
                );
                (opened.claim, delivered)
            }
            Look::Wait(delivered) => {
                let waiting = self.ledger.open_waiting(&id, above.as_ref()).unwrap();
                (waiting.claim.resolve().1, delivered)
            }
            Look::Kill(works) => {
                let hook = |(): &(), request: &CancelRequest| {
                    assert_eq!(request.cause, Cause::Ancestor);
                    if works { Ok(()) } else { Err(()) }
                };
                match self.ledger.kill(&id, above.as_ref(), None, hook).unwrap() {
                    Ok(Killed::Requested { claim, .. }) => (claim, true),
                    Ok(Killed::AlreadyFinished(opened)) => (opened.claim, true),
                    Err(()) => return,
                }
            }
        };
        if delivered {
            claim.deliver();
        }
    }

    fn end(&mut self, ending: Ending) {
        let (_, live) = self.ledger.begin(ending);
        for (id, ()) in live {
            self.ledger
                .cancel(&id, || Ok(()), |outcome| (outcome, 0))
                .unwrap();
        }
    }

    /// What the service's dispatcher does.
    fn dispatch(&mut self) {
        let mut last_settled = None;
        for effect in self.ledger.take_effects() {
            match effect {
                Effect::Settled { snapshot, work: () } => {
                    *self.settled.entry(snapshot.id.clone()).or_default() += 1;
                    last_settled = Some(snapshot.id.clone());
                }
                Effect::Done { snapshot, work: () } => {
                    if last_settled.is_some() {
                        assert_eq!(
                            last_settled,
                            Some(snapshot.id.clone()),
                            "waits are released first"
                        );
                    }
                    self.done
                        .entry(snapshot.id.clone())
                        .or_default()
                        .push(snapshot.reported);
                    self.ledger.dispatched(&snapshot.id, Dispatched::Over);
                }
                Effect::Changed(_) | Effect::Dropped(()) => {}
            }
        }
    }

    fn check_record(&self, world: &World, at: usize) {
        let (id, task) = (&self.ids[at], &world.tasks[at]);
        let seen = self.ledger.look(|table| {
            let record = table.record(id)?;
            Some((record.snapshot(), record.cursor.unread()))
        });
        assert_eq!(seen.is_none(), task.dropped, "record of {id}");
        let Some((snapshot, unread)) = seen else {
            return;
        };
        let status = match task.end {
            Some(end) => end.status(),
            None if task.stopping => dsh_tasks::TaskStatus::Stopping,
            None => dsh_tasks::TaskStatus::Running,
        };
        assert_eq!(snapshot.status, status, "status of {id}");
        assert_eq!(snapshot.reported, world.reported(at), "reported of {id}");
        assert_eq!(snapshot.finished_at.is_some(), task.end.is_some());
        assert!(
            snapshot
                .finished_at
                .is_none_or(|finished| finished >= snapshot.started_at)
        );
        let bytes = 0..self.lengths[at];
        let is_unread = |byte: &u64| {
            unread
                .iter()
                .any(|s| s.start <= *byte && s.end.is_none_or(|end| *byte < end))
        };
        let unread: Vec<u64> = bytes.filter(is_unread).collect();
        let expected = task
            .bytes
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == Byte::Unread);
        let expected: Vec<u64> = expected.map(|(at, _)| at as u64).collect();
        assert_eq!(unread, expected, "unread bytes of {id}");
    }

    fn check_visible(&self, world: &World, caller: usize) {
        let session = owner_of(caller).map(|owner| owner.session);
        let ids = |records: &mut dyn Iterator<Item = &Record<()>>| -> Vec<TaskId> {
            records.map(|record| record.id.clone()).collect()
        };
        let (own, reachable) = self.ledger.look(|table| {
            let own = ids(&mut table.own(session.as_ref()));
            (own, ids(&mut table.reachable(session.as_ref())))
        });
        let is_own = |owner: usize| owner == NOBODY || owner_of(owner).map(|o| o.session) == session;
        let is_below = |owner: usize| owner == CHILD && caller < CHILD;
        let expected = |is_in: &dyn Fn(usize) -> bool| -> Vec<TaskId> {
            let tasks = world.tasks.iter().zip(&self.ids);
            let seen = tasks.filter(|(task, _)| !task.dropped && is_in(task.owner));
            seen.map(|(_, id)| id.clone()).collect()
        };
        assert_eq!(own, expected(&is_own), "of owner {caller}");
        let all = expected(&|owner| is_own(owner) || is_below(owner));
        assert_eq!(reachable, all, "within reach of owner {caller}");
    }

    fn caller(&self, id: &TaskId) -> Option<SessionId> {
        let owner = self.ledger.look(|table| table.record(id)?.owner.clone());
        owner.map(|owner| owner.session)
    }
}

fn outcome(end: End) -> Outcome {
    match end {
        End::Completed => Outcome::completed(),
        End::Killed => Outcome::killed(),
        End::Failed => Outcome::failed(),
        End::Survived => Outcome::killed().survivors(vec![Survivor {
            pid: 1,
            command: "init".to_owned(),
        }]),
    }
}

fn owner_of(owner: usize) -> Option<Owner> {
    let session = ["a", "a", "b"].get(owner)?;
    Some(Owner {
        instance: instance(owner)?,
        session: SessionId::new(*session),
        above: above(owner),
    })
}

fn above(owner: usize) -> Arc<[SessionId]> {
    let above = (owner == CHILD).then(|| SessionId::new("a"));
    above.into_iter().collect()
}

fn instance(owner: usize) -> Option<InstanceId> {
    static INSTANCES: OnceLock<Vec<InstanceId>> = OnceLock::new();
    let instances = INSTANCES.get_or_init(|| {
        let create = |id: &str| {
            let spec = AgentSpec {
                id: SessionId::new(id),
                cwd: None,
                within: Scope::root("model"),
            };
            AgentRegistry::new().create(spec).unwrap().agent().instance()
        };
        ["a", "a", "b"].map(create).to_vec()
    });
    instances.get(owner).copied()
}
