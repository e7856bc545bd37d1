//! What should be true, as plain facts.

use dsh_tasks::TaskStatus;
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

pub(crate) const LIMIT: usize = 3;
/// Owners 0 and 1 are two instances of one session, 2 has its own and works for that one, 3 stands for nobody.
pub(crate) const OWNERS: usize = 4;
pub(crate) const CHILD: usize = 2;
pub(crate) const NOBODY: usize = 3;

#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) tasks: Vec<Task>,
    pub(crate) claims: Vec<Option<Claim>>,
    pub(crate) gone: [bool; OWNERS],
    pub(crate) closing: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) owner: usize,
    pub(crate) end: Option<End>,
    pub(crate) stopping: bool,
    pub(crate) torn: bool,
    pub(crate) told: bool,
    pub(crate) kill_told: bool,
    /// What the one announcement said.
    pub(crate) announced: Option<bool>,
    pub(crate) bytes: Vec<Byte>,
    pub(crate) dropped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Killed,
    Failed,
    Survived,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Byte {
    Unread,
    Taken,
}

#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) task: usize,
    pub(crate) of: Of,
    pub(crate) bytes: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Nothing,
    End,
    Kill,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Start(usize),
    /// Of work that runs already.
    Adopt(usize),
    Settle(usize, End),
    Write(usize, usize),
    Read(usize),
    /// A read of the claim's task, with the claim given back between looking up and taking.
    ReadAcross(usize),
    Wait(usize),
    /// Time is up for a wait.
    Resolve(usize),
    /// With a hook that works, or fails.
    Kill(usize, bool),
    /// By the session that the child works for.
    LookOn(usize, Look),
    Deliver(usize),
    Abandon(usize),
    EndOwner(usize),
    Close,
    /// The end of an owner's disposal.
    Clear(usize),
}

/// What somebody does who looks on, and whether the model gets the result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Look {
    Read(bool),
    Wait(bool),
    Kill(bool),
}

impl End {
    pub(crate) fn status(self) -> TaskStatus {
        match self {
            Self::Completed => TaskStatus::Completed,
            Self::Killed | Self::Survived => TaskStatus::Killed,
            Self::Failed => TaskStatus::Failed,
        }
    }

    fn is_as_asked(self) -> bool {
        matches!(self, Self::Completed | Self::Killed)
    }
}

impl World {
    pub(crate) fn is_live(&self, task: usize) -> bool {
        self.tasks[task].end.is_none()
    }

    pub(crate) fn used(&self, owner: usize) -> usize {
        let live = |task: &&Task| task.owner == owner && task.end.is_none() && !task.dropped;
        self.tasks.iter().filter(live).count()
    }

    pub(crate) fn reported(&self, task: usize) -> bool {
        let holds = |of| {
            self.claims
                .iter()
                .flatten()
                .any(|claim| claim.task == task && claim.of == of)
        };
        let task = &self.tasks[task];
        let kill = task.kill_told || holds(Of::Kill);
        match task.end {
            None => task.torn || kill,
            Some(end) => task.torn || task.told || holds(Of::End) || (kill && end.is_as_asked()),
        }
    }

    fn claim(&mut self, task: usize, of: Of, bytes: Vec<usize>) {
        self.claims.push(Some(Claim { task, of, bytes }));
    }

    /// Announces what is due: ends that nobody is about to tell, or that a disposal claimed.
    fn announce(&mut self) {
        for at in 0..self.tasks.len() {
            let claimed = self
                .claims
                .iter()
                .flatten()
                .any(|claim| claim.task == at && claim.of != Of::Nothing);
            let task = &self.tasks[at];
            let due = task.end.is_some() && task.announced.is_none() && !task.dropped;
            if due && (task.torn || !claimed) {
                self.tasks[at].announced = Some(self.reported(at));
            }
        }
    }

    fn tear_down(&mut self, is_in: impl Fn(&Task) -> bool) {
        for task in self.tasks.iter_mut().filter(|task| !task.dropped && is_in(task)) {
            task.torn = true;
            task.stopping |= task.end.is_none();
        }
    }

    fn end_claim(&mut self, at: usize, delivered: bool) {
        let Some(claim) = self.claims[at].take() else {
            return;
        };
        let task = &mut self.tasks[claim.task];
        match claim.of {
            Of::End => task.told |= delivered,
            Of::Kill => task.kill_told |= delivered,
            Of::Nothing => {}
        }
        if !delivered {
            for byte in claim.bytes {
                task.bytes[byte] = Byte::Unread;
            }
        }
    }

    fn start(&mut self, owner: usize, limit: usize) {
        let refused = self.closing || self.gone[owner] || self.used(owner) >= limit;
        if !refused {
            self.tasks.push(Task {
                owner,
                end: None,
                stopping: false,
                torn: false,
                told: false,
                kill_told: false,
                announced: None,
                bytes: Vec::new(),
                dropped: false,
            });
        }
    }

    fn read(&mut self, task: usize, lost: Option<usize>) {
        let bytes = &self.tasks[task].bytes;
        let unread: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == Byte::Unread).collect();
        if let Some(lost) = lost {
            self.end_claim(lost, false);
        }
        for &byte in &unread {
            self.tasks[task].bytes[byte] = Byte::Taken;
        }
        let of = if self.is_live(task) { Of::Nothing } else { Of::End };
        self.claim(task, of, unread);
    }

    fn kill(&mut self, task: usize, works: bool) {
        if !self.is_live(task) {
            self.claim(task, Of::End, Vec::new());
        } else if works {
            self.tasks[task].stopping = true;
            self.claim(task, Of::Kill, Vec::new());
        }
    }

    fn resolve(&mut self, at: usize) {
        if let Some(claim) = &self.claims[at]
            && claim.of == Of::End
            && self.is_live(claim.task)
        {
            self.claims[at].as_mut().unwrap().of = Of::Nothing;
        }
    }
}

impl ReferenceStateMachine for World {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::default()).boxed()
    }

    fn transitions(world: &Self) -> BoxedStrategy<Step> {
        let start = (0..OWNERS).prop_map(Step::Start);
        let ends = prop_oneof![
            1 => (0..NOBODY).prop_map(Step::EndOwner),
            1 => (0..NOBODY).prop_map(Step::Clear),
            1 => Just(Step::Close),
        ];
        let adopt = (0..OWNERS).prop_map(Step::Adopt);
        let mut all = vec![(4, start.boxed()), (1, adopt.boxed()), (1, ends.boxed())];
        if !world.tasks.is_empty() {
            let task = 0..world.tasks.len();
            let end = prop::sample::select(vec![End::Completed, End::Killed, End::Failed, End::Survived]);
            let used = prop_oneof![
                (task.clone(), end).prop_map(|(task, end)| Step::Settle(task, end)),
                (task.clone(), 1..5_usize).prop_map(|(task, n)| Step::Write(task, n)),
                task.clone().prop_map(Step::Read),
                task.clone().prop_map(Step::Wait),
                (task.clone(), any::<bool>()).prop_map(|(task, works)| Step::Kill(task, works)),
                (task, look()).prop_map(|(task, look)| Step::LookOn(task, look)),
            ];
            all.push((12, used.boxed()));
        }
        if !world.claims.is_empty() {
            let claim = 0..world.claims.len();
            let claims = prop_oneof![
                claim.clone().prop_map(Step::Deliver),
                claim.clone().prop_map(Step::Abandon),
                claim.clone().prop_map(Step::Resolve),
                claim.prop_map(Step::ReadAcross),
            ];
            all.push((10, claims.boxed()));
        }
        prop::strategy::Union::new_weighted(all).boxed()
    }

    fn apply(mut world: Self, step: &Step) -> Self {
        match *step {
            Step::Start(owner) => world.start(owner, LIMIT),
            Step::Adopt(owner) => world.start(owner, usize::MAX),
            Step::Settle(task, end) => {
                world.tasks[task].end.get_or_insert(end);
            }
            Step::Write(task, n) => {
                let bytes = std::iter::repeat_n(Byte::Unread, n);
                world.tasks[task].bytes.extend(bytes);
            }
            Step::Read(task) => world.read(task, None),
            Step::ReadAcross(claim) => {
                let task = world.claims[claim].as_ref().unwrap().task;
                world.read(task, Some(claim));
            }
            Step::Wait(task) => world.claim(task, Of::End, Vec::new()),
            Step::Resolve(claim) => world.resolve(claim),
            Step::Kill(task, works) => world.kill(task, works),
            // Who looks on takes nothing from the owner: only a kill leaves a trace, and no claim.
            Step::LookOn(task, Look::Kill(true)) => world.tasks[task].stopping |= world.is_live(task),
            Step::LookOn(..) => {}
            Step::Deliver(claim) => world.end_claim(claim, true),
            Step::Abandon(claim) => world.end_claim(claim, false),
            Step::EndOwner(owner) => {
                world.gone[owner] = true;
                world.tear_down(|task| task.owner == owner);
            }
            Step::Close => {
                world.closing = true;
                world.tear_down(|_| true);
            }
            Step::Clear(owner) => {
                for task in world.tasks.iter_mut().filter(|task| task.owner == owner) {
                    task.dropped = true;
                }
            }
        }
        world.announce();
        world
    }

    fn preconditions(world: &Self, step: &Step) -> bool {
        let is_usable = |task: &usize| world.tasks.get(*task).is_some_and(|task| !task.dropped);
        let held = |claim: &usize| {
            let claim = world.claims.get(*claim).and_then(Option::as_ref);
            claim.filter(|claim| !world.tasks[claim.task].dropped)
        };
        match step {
            Step::Start(_) | Step::Adopt(_) | Step::EndOwner(_) | Step::Close => true,
            Step::Settle(task, _) | Step::Read(task) | Step::Wait(task) | Step::Kill(task, _) => {
                is_usable(task)
            }
            Step::LookOn(task, _) => is_usable(task) && world.tasks[*task].owner == CHILD,
            Step::Write(task, _) => is_usable(task) && world.is_live(*task),
            Step::Deliver(claim) | Step::Abandon(claim) | Step::ReadAcross(claim) => held(claim).is_some(),
            Step::Resolve(claim) => held(claim).is_some_and(|claim| claim.of != Of::Kill),
            // A disposal ends when all has ended, and was announced.
            Step::Clear(owner) => world.gone[*owner] && world.used(*owner) == 0,
        }
    }
}

fn look() -> impl Strategy<Value = Look> {
    prop_oneof![
        any::<bool>().prop_map(Look::Read),
        any::<bool>().prop_map(Look::Wait),
        any::<bool>().prop_map(Look::Kill),
    ]
}
