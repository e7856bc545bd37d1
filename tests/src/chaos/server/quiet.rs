//! A connection comes to rest, and everything about it is looked at.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Connection, Started};
use crate::chaos::book::{Call, SIDES};
use crate::chaos::wire::{Gone, PATIENCE};
use crate::chaos::{Faults, facts};

/// The most that a server may hold at any moment, in KiB, in a debug build.
const MOST_KIB: u64 = 80_000;
/// How long it may take until an end is told, a child waited for, a descriptor closed.
const SOON: Duration = Duration::from_secs(15);
/// Descriptors of a server at rest that come and go: two for each guard that stands ready, some for threads that end.
const SPARE: usize = 24;

impl Connection {
    /// Everything comes to its end, is told, and is accounted for.
    pub(super) async fn settle(&mut self) -> Result<(), Gone> {
        let open = self.wire.book().open();
        for id in open {
            if self.wire.book().open().contains(&id) {
                self.wire.answer(id).await?;
            }
        }
        // Those whose start was cancelled are in the list, if they are tasks.
        self.list().await?;
        let tasks = self.wire.book().tasks();
        for (task, _) in &tasks {
            if self.dice.percent(60) {
                self.ask(task).await?;
            }
        }
        for (task, _) in &tasks {
            self.until_ended(task).await?;
        }
        self.until_told().await?;
        for (task, _) in &tasks {
            self.drain(task).await?;
        }
        let mut faults = self.accounts();
        faults.extend(self.at_rest().await);
        self.wire.book().faults.extend(faults);
        Ok(())
    }

    async fn list(&mut self) -> Result<(), Gone> {
        let id = self.wire.call("task_list", json!({}), Call::List).await?;
        self.wire.answer(id).await.map(drop)
    }

    async fn ask(&mut self, task: &str) -> Result<(), Gone> {
        let call = Call::Kill(task.to_owned());
        let id = self
            .wire
            .call("task_kill", json!({"task_id": task}), call)
            .await?;
        self.wire.answer(id).await.map(drop)
    }

    /// Looks until the task has ended, and ends it if it does not do so itself.
    async fn until_ended(&mut self, task: &str) -> Result<(), Gone> {
        let began = Instant::now();
        let mut asked = false;
        loop {
            let id = self.wire.look(task).await?;
            self.wire.answer(id).await?;
            if self.wire.book().end_of(task).is_some() {
                return Ok(());
            }
            if began.elapsed() > Duration::from_secs(1) && !asked {
                asked = true;
                self.ask(task).await?;
            }
            if began.elapsed() > PATIENCE {
                self.wire.book().faults.push(format!("{task} does not end"));
                return Ok(());
            }
            // sleep: looking without a pause would keep a processor from those who end.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Goes on until there is no end that nobody has told.
    async fn until_told(&mut self) -> Result<(), Gone> {
        let began = Instant::now();
        loop {
            self.list().await?;
            let mut book = self.wire.book();
            if book.untold().is_empty() {
                return Ok(());
            }
            if began.elapsed() > SOON {
                let fault = format!("nobody told the end of {:?}", book.untold());
                book.faults.push(fault);
                return Ok(());
            }
        }
    }

    async fn drain(&mut self, task: &str) -> Result<(), Gone> {
        for _ in 0..100 {
            let call = Call::Read(task.to_owned());
            let id = self
                .wire
                .call("task_output", json!({"task_id": task}), call)
                .await?;
            if self
                .wire
                .answer(id)
                .await?
                .text()
                .starts_with("(no new output)\n")
            {
                return Ok(());
            }
        }
        self.wire
            .book()
            .faults
            .push(format!("{task} can be read for ever"));
        Ok(())
    }

    /// Every byte was told or counted, once.
    fn accounts(&self) -> Faults {
        let book = self.wire.book();
        let mut faults = Vec::new();
        for Started { writer, doubtful, .. } in &self.writers {
            let task = book.task_of(&writer.token);
            // Who was started by a call that was cancelled was ended with it, unless it is a task.
            if *doubtful && task.is_none() || task.is_some_and(|task| book.was_given_up(task)) {
                continue;
            }
            let Some(account) = book.account(&writer.token) else {
                continue;
            };
            let mut wrong = SIDES.iter().filter_map(|&side| {
                let written = writer.written(&self.room, side);
                account.check(side, written).err()
            });
            faults.extend(wrong.next().map(|wrong| {
                let end = task.and_then(|task| book.end_of(task));
                format!("{wrong} ({task:?}, {end:?}, {})", writer.command)
            }));
        }
        faults
    }

    /// Nothing is left of what was done, though the server lives.
    async fn at_rest(&self) -> Faults {
        // The file of a record stays open with it.
        let most = self.descriptors + self.wire.book().tasks().len() + SPARE;
        let began = Instant::now();
        loop {
            let (open, listening) = facts::descriptors(self.server);
            let zombies = facts::zombies(self.server);
            let peak = facts::peak_kib(self.server).unwrap_or_default();
            if open <= most && listening == 0 && zombies.is_empty() && peak <= MOST_KIB {
                return Vec::new();
            }
            if began.elapsed() > SOON {
                return vec![format!(
                    "at rest: {open} descriptors (at most {most}), {listening} listen, zombies {zombies:?}, {peak} KiB"
                )];
            }
            // sleep: the facts are polled.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
