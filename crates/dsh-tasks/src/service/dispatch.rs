//! The one task that acts on effects, in their order: releases who waits, tells observers, calls done listeners.

use std::{
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use dsh_agent::{Agent, NoticeKey};
use dsh_output::last_lines;
use dsh_scope::{Contained, Panicked, contain, contain_boxed};
use dsh_session::SessionId;

use crate::{
    core::{Dispatched, Effect},
    error::BoxError,
    id::TaskId,
    snapshot::TaskSnapshot,
    work::BoxFuture,
};

use super::{Shared, kept::Kept};

/// The most lines and bytes of output that go with a notice.
const TAIL_LINES: usize = 5;
const TAIL_BYTES: usize = 400;

/// The end of a task, as its listeners get it: the same for all of them, once per task.
#[derive(Clone)]
pub struct TaskDone {
    /// The task as it ended. Where it is `reported` the owner knows, or is being told: a notice stays quiet.
    pub snapshot: Arc<TaskSnapshot>,
    /// The exact owner; nobody when the task is unowned, or when that agent is gone.
    pub owner: Option<Arc<Agent>>,
    /// The last output, at most 5 lines and 400 bytes; empty if there was none.
    pub tail: String,
    kept: Kept,
}

type Listening = Contained<BoxFuture<Result<(), BoxError>>>;

impl TaskDone {
    /// The key under which a notice of this end must be queued in the owner's inbox: reads and waits that tell of the end
    /// themselves hold and retract it by that.
    pub fn notice_key(&self) -> NoticeKey {
        self.kept.notice_key(&self.snapshot.id)
    }
}

pub(super) async fn run(shared: Arc<Shared>) {
    let mut over = pin!(shared.over.cancelled());
    loop {
        // Who left effects ticks after that: what is not taken now has a tick to come.
        let is_over = tokio::select! {
            biased;
            () = shared.pulse.effects() => false,
            () = &mut over => true,
        };
        let mut idle = true;
        for effect in shared.ledger.take_effects() {
            idle = false;
            // Listeners are contained one by one; this is for the drop of what a producer left behind.
            if let Err(panicked) = contain(|| act(&shared, effect)) {
                tracing::error!("tasks: letting go of a task panicked: {panicked}");
            }
            // A busy registry must not keep its thread from everybody else.
            tokio::task::consume_budget().await;
        }
        if is_over && idle {
            return;
        }
    }
}

fn act(shared: &Arc<Shared>, effect: Effect<Kept>) {
    match effect {
        Effect::Settled { snapshot, work } => work.ended.come(work.complete_end(snapshot)),
        Effect::Changed(owner) => tell_observers(shared, owner.as_ref()),
        Effect::Done { snapshot, work } => done(shared, snapshot, &work),
        Effect::Dropped(work) => drop(work),
    }
}

fn tell_observers(shared: &Shared, owner: Option<&SessionId>) {
    let mut last = None;
    while let Some((id, observer)) = shared.registrations.next_observer(last) {
        last = Some(id);
        if let Err(panicked) = contain(|| observer(owner)) {
            tracing::warn!("tasks: onTasksChanged observer threw: {panicked}");
        }
    }
}

fn done(shared: &Arc<Shared>, snapshot: Arc<TaskSnapshot>, kept: &Kept) {
    let name = snapshot.id.clone();
    let id = kept.key(&name).clone();
    let event = TaskDone {
        tail: last_output(shared, &snapshot, &id, kept),
        snapshot: kept.complete_end(snapshot),
        owner: kept.owner(),
        kept: kept.clone(),
    };
    let mut called = Vec::new();
    let mut pending: Vec<Listening> = Vec::new();
    while let Some((number, listener)) = shared.registrations.next_listener(event.owner.as_ref(), &called) {
        called.push(number);
        match contain(|| listener(event.clone())) {
            Err(panicked) => tracing::warn!("tasks: onTaskDone listener threw for {name}: {panicked}"),
            Ok(future) => pending.extend(started(&name, future)),
        }
    }
    if pending.is_empty() {
        over(shared, &id, &event);
        return;
    }
    shared.ledger.dispatched(&id, Dispatched::Called);
    let service = shared.clone();
    let rest = async move {
        for listening in pending {
            tokio::select! {
                result = listening => report(&name, result),
                () = service.over.cancelled() => {}
            }
        }
        over(&service, &id, &event);
    };
    // The scope closes after this dispatcher has ended.
    let _ = shared.scope.spawn("tasks.onTaskDone()", rest);
}

/// Polls what a listener returned once, so that a listener that never waits is done in its turn; the rest of one that
/// waits.
fn started(id: &TaskId, future: BoxFuture<Result<(), BoxError>>) -> Option<Listening> {
    let mut listening = contain_boxed(future);
    match Pin::new(&mut listening).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => {
            report(id, result);
            None
        }
        Poll::Pending => Some(listening),
    }
}

fn report(id: &TaskId, result: Result<Result<(), BoxError>, Panicked>) {
    match result {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("tasks: onTaskDone listener rejected for {id}: {error}"),
        Err(panicked) => tracing::warn!("tasks: onTaskDone listener rejected for {id}: {panicked}"),
    }
}

/// No notice of this end will come any more. If somebody has told of it meanwhile, the inbox waits for none.
fn over(shared: &Shared, id: &TaskId, event: &TaskDone) {
    let told = shared.ledger.dispatched(id, Dispatched::Over);
    if told && let Some(owner) = event.kept.owner() {
        owner.inbox().forget(&event.notice_key());
    }
}

fn last_output(shared: &Shared, end: &TaskSnapshot, id: &TaskId, kept: &Kept) -> String {
    let Some(output) = &kept.hooks.output else {
        if end.bytes == 0 {
            return String::new();
        }
        let last = shared.ledger.look(|table| {
            let record = table.record(id)?;
            record
                .final_output()
                .map(|output| last_lines(output, TAIL_LINES, TAIL_BYTES).to_owned())
        });
        return last.unwrap_or_default();
    };
    contain(|| output.tail(TAIL_LINES, TAIL_BYTES)).unwrap_or_else(|panicked| {
        tracing::error!("tasks: the output of {id} panicked: {panicked}");
        String::new()
    })
}

impl fmt::Debug for TaskDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskDone")
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}
