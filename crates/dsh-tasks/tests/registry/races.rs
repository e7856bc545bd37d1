//! The races of an end, many times, on several threads, seen from the owner's inbox.

use std::sync::Arc;

use dsh_agent::{Agent, AgentHandle};
use dsh_tasks::{Claim, Outcome, TaskId};
use dsh_testkit::eventually;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    claims::notify,
    common::{Producer, Rig, limit},
};

const ROUNDS: usize = 600;

/// What one of those who race did about the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Did {
    /// The model knows that it ended, or that it was asked to.
    Told,
    Nothing,
}

struct Race {
    rig: Rig,
    agent: AgentHandle,
}

impl Race {
    fn new() -> Self {
        let rig = Rig::with(limit(10_000));
        notify(&rig);
        let agent = rig.agent("a");
        Self { rig, agent }
    }

    fn owner(&self) -> Arc<Agent> {
        self.agent.agent().clone()
    }

    fn start(&self) -> (TaskId, Producer) {
        let producer = Producer::new();
        let id = self.rig.start(&producer, Some(self.agent.agent()));
        (id, producer)
    }

    fn wait(&self, id: TaskId, token: CancellationToken) -> impl Future<Output = Did> + Send + 'static {
        let (tasks, owner) = (self.rig.tasks.clone(), self.owner());
        async move {
            match tasks.wait(&id, Some(&owner), 60_000.0, &token).await {
                Ok(waited) => told_unless_lost(waited.claim, &id),
                Err(_) => Did::Nothing,
            }
        }
    }

    fn kill(&self, id: TaskId) -> impl Future<Output = Did> + Send + 'static {
        let (tasks, owner) = (self.rig.tasks.clone(), self.owner());
        async move {
            let killed = tasks.kill(&id, Some(&owner), None).unwrap();
            told_unless_lost(killed.claim, &id)
        }
    }

    fn read(&self, id: TaskId) -> impl Future<Output = Did> + Send + 'static {
        let (tasks, owner) = (self.rig.tasks.clone(), self.owner());
        async move {
            let read = tasks.read(&id, Some(&owner), 10).unwrap();
            let saw_end = read.snapshot.status.is_terminal();
            let did = told_unless_lost(read.claim, &id);
            if saw_end { did } else { Did::Nothing }
        }
    }

    /// Every end is known to the owner on exactly one way.
    async fn each_end_is_told_once(&self, rounds: &[(TaskId, Did)]) {
        let silent = |(_, did): &&(TaskId, Did)| *did == Did::Nothing;
        let expected: Vec<&TaskId> = rounds.iter().filter(silent).map(|(id, _)| id).collect();
        let inbox = self.agent.agent().inbox();
        eventually("the notices", || inbox.pending() >= expected.len()).await;
        crate::common::settled().await;
        let lease = inbox.lease();
        let text = |message: &dsh_session::Message| dsh_llm::text_of(&message.content);
        let mut noticed: Vec<String> = lease.messages().iter().map(text).collect();
        let mut expected: Vec<String> = expected
            .iter()
            .map(|id| {
                let snapshot = self.rig.status(id, Some(self.agent.agent()));
                self.rig.tasks.vocabulary().notice(&snapshot)
            })
            .collect();
        noticed.sort();
        expected.sort();
        assert_eq!(noticed, expected);
        lease.commit();
    }
}

/// Every third answer gets lost on its way.
fn told_unless_lost(claim: Claim, id: &TaskId) -> Did {
    let number: usize = id.as_str().rsplit('-').next().unwrap().parse().unwrap();
    if number.is_multiple_of(3) {
        drop(claim);
        return Did::Nothing;
    }
    claim.deliver();
    Did::Told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_end_that_meets_a_wait_its_abort_a_kill_and_a_read_is_told_once() {
    let race = Race::new();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (id, producer) = race.start();
        let token = CancellationToken::new();
        let mut actors = JoinSet::new();
        actors.spawn(race.wait(id.clone(), token.clone()));
        actors.spawn(race.kill(id.clone()));
        actors.spawn(race.read(id.clone()));
        actors.spawn(async move {
            token.cancel();
            Did::Nothing
        });
        actors.spawn(async move {
            producer.settle(Outcome::killed());
            Did::Nothing
        });
        let did = actors.join_all().await;
        let told = did.contains(&Did::Told);
        rounds.push((id, if told { Did::Told } else { Did::Nothing }));
    }
    race.each_end_is_told_once(&rounds).await;
}

#[test]
fn what_the_registry_returns_may_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    fn moves<T: Send + 'static>() {}
    moves::<Claim>();
    moves::<dsh_tasks::TaskRead>();
    moves::<dsh_tasks::Killed>();
    moves::<dsh_tasks::StartSpec>();
    let check = |tasks: &dsh_tasks::TaskRegistry, id: &TaskId, token: &CancellationToken| {
        is_send(&tasks.wait(id, None, 1.0, token));
        is_send(&tasks.close());
    };
    let _ = check;
}
