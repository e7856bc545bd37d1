//! One agent after the other with the same id: what each of them does, and what it must find.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use dsh_agent::{Agent, AgentHandle};
use dsh_llm::{CallId, text_of};
use dsh_tasks::{ReadError, StartError, TaskId};
use dsh_tools::ToolContext;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{DISPOSAL, SLACK, World};
use crate::Reply;
use crate::chaos::Faults;
use crate::chaos::book::{Book, Call};
use crate::chaos::dice::Dice;
use crate::chaos::lines::{Side, Told, Written};
use crate::chaos::player::{Part, Played};

/// An agent, and what it knows.
struct Life {
    world: Arc<World>,
    handle: AgentHandle,
    book: Book,
    tasks: Vec<(TaskId, String, Part, Played)>,
    calls: i64,
}

/// Lives one life after the other until the world ends.
pub(super) async fn live(world: Arc<World>, letter: char, mut dice: Dice) -> Faults {
    let mut faults = Vec::new();
    let mut started = 0;
    while !world.closing.load(Ordering::Acquire) {
        let Some(handle) = world.agent(&format!("agent-{letter}")) else {
            break;
        };
        let mut life = Life {
            world: Arc::clone(&world),
            handle,
            book: Book::default(),
            tasks: Vec::new(),
            calls: 0,
        };
        for _ in 0..3 + dice.below(25) {
            let token = format!("{letter}{started:03}");
            started += 1;
            life.step(token, &mut dice).await;
            // sleep: what happens between two steps is as random as the steps.
            tokio::time::sleep(dice.millis(40)).await;
        }
        if dice.percent(60) {
            life.settle(&mut dice).await;
        }
        life.end().await;
        faults.append(&mut life.book.faults);
    }
    faults
}

impl Life {
    async fn step(&mut self, token: String, dice: &mut Dice) {
        let task = dice.below(1 << 20);
        let task = (!self.tasks.is_empty()).then(|| self.tasks[task % self.tasks.len().max(1)].0.clone());
        match (dice.below(100), task) {
            (0..35, _) | (_, None) => self.start(token, dice),
            (35..60, Some(task)) => self.call("task_output", json!({}), &task, dice).await,
            (60..75, Some(task)) => {
                let more = json!({"wait": true, "timeout_ms": 1 + dice.below(200)});
                self.call("task_output", more, &task, dice).await;
            }
            (75..87, Some(task)) => self.call("task_kill", json!({}), &task, dice).await,
            (87..94, Some(_)) => self.hear(dice.percent(70)),
            (_, Some(_)) => self.pry(dice),
        }
    }

    fn start(&mut self, token: String, dice: &mut Dice) {
        let part = Part::any(dice);
        let (spec, played) = Played::spec(part.clone(), &token, &self.world.kept);
        match self.world.tasks.start(spec.owned_by(Arc::clone(self.agent()))) {
            Ok(id) => {
                self.book.starts(id.as_str(), &token);
                let session = self.agent().id().clone();
                self.known().insert(id.clone(), session);
                self.tasks.push((id, token, part, played));
            }
            Err(StartError::Limit { .. } | StartError::NoSurface(_)) => {}
            Err(StartError::Run(_) | StartError::Panicked(_)) if part.refuses() => {}
            Err(StartError::Closing(_) | StartError::OwnerClosing(_) | StartError::NotRegistered { .. })
                if self.is_ending() => {}
            Err(error) => self.book.faults.push(format!("{token} was refused: {error}")),
        }
    }

    /// A call that may be dropped, cancelled, or lose its result.
    async fn call(&mut self, tool: &str, mut arguments: Value, task: &TaskId, dice: &mut Dice) {
        arguments["task_id"] = json!(task.as_str());
        let (fate, time) = (dice.below(100), dice.millis(50));
        let token = CancellationToken::new();
        let context = ToolContext {
            caller: Some(Arc::clone(self.agent())),
            token: token.clone(),
            call_id: CallId::new(format!("call-{}", self.calls)),
        };
        let called = self.world.tools.execute(tool, arguments, context);
        let result = if fate < 15 {
            tokio::time::timeout(time, called).await.ok()
        } else if fate < 30 {
            let cancel = async {
                // sleep: the moment of the cancellation is as random as the rest.
                tokio::time::sleep(time).await;
                token.cancel();
                std::future::pending().await
            };
            tokio::select! {
                result = called => Some(result),
                () = cancel => None,
            }
        } else {
            Some(called.await)
        };
        // What is not delivered was not told.
        let Some(result) = result.filter(|_| fate < 80) else {
            return;
        };
        let call = match tool {
            "task_kill" => Call::Kill(task.to_string()),
            _ => Call::Read(task.to_string()),
        };
        let reply = Reply {
            texts: vec![text_of(&result.content)],
            is_error: result.is_error,
        };
        self.calls += 1;
        self.book.sends(self.calls, call);
        self.book.answered(self.calls, reply);
        result.deliveries.deliver_all();
    }

    /// Hears what there is, or only listens.
    fn hear(&mut self, and_remembers: bool) {
        let lease = self.handle.agent().inbox().lease();
        if !and_remembers {
            return;
        }
        for message in lease.messages() {
            self.book.noticed(&text_of(&message.content), Told::Surely);
        }
        lease.commit();
    }

    /// Tries what is somebody else's.
    fn pry(&mut self, dice: &mut Dice) {
        let me = self.agent().id().clone();
        let others: Vec<TaskId> = {
            let known = self.known();
            let others = known.iter().filter(|(_, owner)| **owner != me);
            others.map(|(id, _)| id.clone()).collect()
        };
        if others.is_empty() {
            return;
        }
        let id = dice.pick(&others).clone();
        match self.world.tasks.read(&id, Some(self.agent()), 1000) {
            // It may have gone with its owner.
            Err(ReadError::Access(_)) => {}
            Err(ReadError::Source(error)) => self.book.faults.push(format!("{id} is another's: {error}")),
            Ok(read) => self
                .book
                .faults
                .push(format!("{id} is another's, and was read: {read:?}")),
        }
    }

    /// All that can end does; all that ended was told, and all that was written is there.
    async fn settle(&mut self, dice: &mut Dice) {
        for (id, _, part, _) in self.tasks.clone() {
            if part.can_be_ended() && (!part.ends() || dice.percent(50)) {
                self.call("task_kill", json!({}), &id, dice).await;
                _ = self.world.tasks.kill(&id, Some(self.handle.agent()), None);
            }
        }
        self.until_ended().await;
        self.until_told().await;
        for (id, token, _, played) in self.tasks.clone() {
            if played.streams() && self.end_of(&id) {
                self.drain(&id, &token, &played).await;
            }
        }
    }

    async fn until_ended(&mut self) {
        let began = self.world.now();
        while self.world.now() - began < SLACK && !self.is_ending() {
            let live = self
                .tasks
                .iter()
                .filter(|(id, _, part, _)| (part.ends() || part.can_be_ended()) && !self.end_of(id));
            let live: Vec<String> = live.map(|(id, ..)| id.to_string()).collect();
            if live.is_empty() {
                return;
            }
            self.tick().await;
        }
        if !self.is_ending() {
            let live = self.world.tasks.list(Some(self.agent()));
            self.book
                .faults
                .push(format!("not all that can end does: {live:?}"));
        }
    }

    async fn until_told(&mut self) {
        let began = self.world.now();
        loop {
            self.hear(true);
            for (id, ..) in self.tasks.clone() {
                if let Ok(snapshot) = self.world.tasks.get(&id, Some(self.agent())) {
                    self.book.shown(id.as_str(), &snapshot.status_line(), None);
                }
            }
            let untold = self.book.untold().into_iter().map(TaskId::new);
            // Nobody was there to make a notice of it, so nobody was told.
            let untold: Vec<TaskId> = untold
                .filter(|id| !matches!(self.world.announced(id), (1, false)))
                .collect();
            if untold.is_empty() || self.is_ending() {
                return;
            }
            if self.world.now() - began > SLACK {
                self.book
                    .faults
                    .push(format!("nobody told the end of {untold:?}"));
                return;
            }
            self.tick().await;
        }
    }

    async fn drain(&mut self, id: &TaskId, token: &str, played: &Played) {
        for _ in 0..1000 {
            let read = match self
                .world
                .tasks
                .read(id, Some(self.agent()), self.world.config.max_read_bytes)
            {
                Ok(read) => read,
                Err(_) if self.is_ending() => return,
                Err(error) => {
                    self.book.faults.push(format!("{id} cannot be read: {error}"));
                    return;
                }
            };
            if read.text.is_empty() {
                let account = self.book.account(token);
                let written = Written::All(played.written());
                let wrong = account.and_then(|account| account.check(Side::Out, written).err());
                self.book.faults.extend(wrong);
                return;
            }
            let text = format!(
                "{}\n{}",
                read.text.trim_end_matches('\n'),
                read.snapshot.status_line()
            );
            self.calls += 1;
            self.book.sends(self.calls, Call::Read(id.to_string()));
            self.book.answered(
                self.calls,
                Reply {
                    texts: vec![text],
                    is_error: false,
                },
            );
            read.claim.deliver();
        }
        self.book.faults.push(format!("{id} can be read for ever"));
    }

    /// The end of this agent: in time, and of all that was its own.
    async fn end(&mut self) {
        let began = self.world.now();
        let disposed = self.handle.dispose().await;
        let (took, bound) = (self.world.now() - began, DISPOSAL + SLACK);
        let faults = &mut self.book.faults;
        faults.extend(disposed.err().map(|error| error.to_string()));
        if took > bound {
            faults.push(format!("a disposal took {took:?} of {bound:?}"));
        }
        for (id, _, part, _) in &self.tasks {
            if self.world.tasks.get(id, None).is_ok() {
                faults.push(format!("{id} has outlived its owner"));
            }
            let (times, _) = self.world.announced(id);
            // Once the registry ends nothing is announced any more.
            if times > 1 || times == 0 && !self.world.root.is_closing() {
                faults.push(format!("the end of {id} was announced {times} times ({part:?})"));
            }
        }
        let mut known = self.world.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, ..) in &self.tasks {
            known.remove(id);
        }
    }

    async fn tick(&self) {
        // sleep: the facts are polled.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    fn end_of(&self, id: &TaskId) -> bool {
        let snapshot = self.world.tasks.get(id, Some(self.handle.agent()));
        snapshot.is_ok_and(|snapshot| snapshot.status.is_terminal())
    }

    fn is_ending(&self) -> bool {
        self.world.root.is_closing()
    }

    fn agent(&self) -> &Arc<Agent> {
        self.handle.agent()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeMap<TaskId, dsh_session::SessionId>> {
        self.world.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
