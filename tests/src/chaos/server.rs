//! One connection of the real binary: what its client does, what befalls it, how it ends.

mod weather;

use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use self::weather::{Ending, Weather};
use super::book::{Call, SIDES};
use super::dice::Dice;
use super::wire::{Gone, PATIENCE, Wire};
use super::writers::Writer;
use super::{Faults, Found, facts};
use crate::Room;

/// The most that a server may hold at any moment, in KiB, in a debug build.
const MOST_KIB: u64 = 120_000;
/// How long the end of a server may take: the grace, ten seconds for survivors, and a busy machine.
const DISPOSAL: Duration = Duration::from_secs(30);
/// How long what a killed server leaves may take to end.
const LEFT: Duration = Duration::from_secs(15);
/// How long it may take until an end is told, a child waited for, a descriptor closed.
const SOON: Duration = Duration::from_secs(15);
/// Descriptors of a server at rest that come and go: two for each guard that stands ready, some for threads that end.
const SPARE: usize = 24;

/// A connection under way.
struct Connection {
    /// What its tokens begin with.
    letter: char,
    room: Room,
    wire: Wire,
    server: u32,
    dice: Dice,
    weather: Weather,
    writers: Vec<Started>,
    /// Calls that were not waited for.
    open: Vec<i64>,
    /// What passes by itself.
    later: JoinSet<()>,
    descriptors: usize,
}

struct Started {
    writer: Writer,
    call: i64,
    /// Its call was cancelled, so it may be a task or not.
    doubtful: bool,
}

/// Runs one connection from its beginning to its end.
pub(super) async fn connection(letter: char, mut dice: Dice) -> Found {
    let weather = Weather::any(&mut dice);
    let ending = Ending::any(&mut dice);
    let steps = 10 + dice.below(40);
    let config = config(&mut dice);
    let about = format!("connection {letter}: {weather:?}, {ending:?}, {steps} steps, {config:?}");
    let room = Room::new();
    let Ok(wire) = Wire::start(&room, &config).await else {
        return Found::fault(format!("{about}: the server does not start\n{}", log(&room)));
    };
    let Some(server) = wire.pid() else {
        return Found::fault(format!("{about}: the server has gone at once"));
    };
    let mut connection = Connection {
        letter,
        room,
        wire,
        server,
        dice,
        weather,
        writers: Vec::new(),
        open: Vec::new(),
        later: JoinSet::new(),
        descriptors: 0,
    };
    let lived = connection.live(steps, ending).await;
    let mut faults = std::mem::take(&mut connection.wire.book().faults);
    if let Err(Gone) = lived {
        faults.push("the server has gone, and nobody asked it to".to_owned());
    }
    faults.extend(connection.end(ending, &config).await);
    if !faults.is_empty() {
        faults.insert(0, about);
        faults.push(connection.log());
    }
    let tasks = connection.wire.book().tasks().len();
    Found { tasks, faults }
}

impl Connection {
    async fn live(&mut self, steps: usize, ending: Ending) -> Result<(), Gone> {
        self.warm_up().await?;
        for _ in 0..steps {
            self.weather
                .strikes(&self.room, self.server, &mut self.dice, &mut self.later);
            if let Err(gone) = self.step().await {
                self.weather.clears(&self.room, self.server);
                return Err(gone);
            }
            // sleep: what happens between two steps is as random as the steps.
            tokio::time::sleep(self.dice.millis(40)).await;
        }
        if ending.is_abrupt() {
            return Ok(());
        }
        self.weather.clears(&self.room, self.server);
        self.settle().await
    }

    /// The first command makes what stays: threads, a supervisor, guards.
    async fn warm_up(&mut self) -> Result<(), Gone> {
        let writer = Writer::short(self.next_token(), &mut Dice::new(0));
        let started = self.start(writer, "bash", json!({})).await?;
        self.wire.answer(started).await?;
        self.descriptors = facts::descriptors(self.server).0;
        Ok(())
    }

    async fn step(&mut self) -> Result<(), Gone> {
        match self.dice.below(100) {
            0..28 => self.start_in_background().await,
            28..38 => self.start_in_foreground().await,
            38..56 => self.read(json!({})).await,
            56..66 => {
                let timeout = 1 + self.dice.below(400);
                self.read(json!({"wait": true, "timeout_ms": timeout})).await
            }
            66..76 => self.kill().await,
            76..82 => {
                let id = self.wire.call("task_list", json!({}), Call::List).await?;
                self.maybe_wait(id).await
            }
            82..88 => match self.target().await? {
                ControlFlow::Continue(task) => {
                    let id = self.wire.look(&task).await?;
                    self.maybe_wait(id).await
                }
                ControlFlow::Break(()) => Ok(()),
            },
            88..97 => self.cancel().await,
            _ => {
                self.wire.be_deaf(self.dice.millis(300));
                Ok(())
            }
        }
    }

    async fn start_in_background(&mut self) -> Result<(), Gone> {
        let writer = Writer::any(self.next_token(), &mut self.dice);
        let mut more = json!({"run_in_background": true});
        if self.dice.percent(15) {
            more["timeoutMs"] = json!(50 + self.dice.below(1500));
        }
        self.start(writer, "bash", more).await?;
        Ok(())
    }

    async fn start_in_foreground(&mut self) -> Result<(), Gone> {
        let writer = Writer::short(self.next_token(), &mut self.dice);
        let mut more = json!({});
        if self.dice.percent(20) {
            more["timeoutMs"] = json!(20 + self.dice.below(300));
        }
        let id = self.start(writer, "bash", more).await?;
        self.maybe_wait(id).await
    }

    async fn start(&mut self, writer: Writer, tool: &str, more: serde_json::Value) -> Result<i64, Gone> {
        let mut arguments = json!({"command": writer.command, "description": "write numbered lines"});
        let call = match more["run_in_background"].is_null() {
            true => Call::Foreground(writer.token.clone()),
            false => Call::Start(writer.token.clone()),
        };
        for (name, value) in more.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        let id = self.wire.call(tool, arguments, call).await?;
        self.writers.push(Started {
            writer,
            call: id,
            doubtful: false,
        });
        Ok(id)
    }

    async fn read(&mut self, mut arguments: serde_json::Value) -> Result<(), Gone> {
        let ControlFlow::Continue(task) = self.target().await? else {
            return Ok(());
        };
        arguments["task_id"] = json!(task);
        let id = self.wire.call("task_output", arguments, Call::Read(task)).await?;
        self.maybe_wait(id).await
    }

    async fn kill(&mut self) -> Result<(), Gone> {
        let ControlFlow::Continue(task) = self.target().await? else {
            return Ok(());
        };
        let arguments = json!({"task_id": task, "reason": "chaos"});
        let id = self.wire.call("task_kill", arguments, Call::Kill(task)).await?;
        self.maybe_wait(id).await
    }

    async fn cancel(&mut self) -> Result<(), Gone> {
        // The newest is the one that is most likely under way.
        let open = self.wire.book().open();
        let Some(&call) = open.last() else { return Ok(()) };
        for started in self.writers.iter_mut().filter(|started| started.call == call) {
            started.doubtful = true;
        }
        self.open.retain(|other| *other != call);
        self.wire.cancel(call).await
    }

    /// A task that this client knows of. Whose start is not acknowledged yet is waited for, so that the choice is the
    /// dice's and not the machine's.
    async fn target(&mut self) -> Result<ControlFlow<(), String>, Gone> {
        let known = self.writers.iter().filter(|started| !started.doubtful);
        let known: Vec<(i64, String)> = known
            .map(|started| (started.call, started.writer.token.clone()))
            .collect();
        let (call, token) = self.dice.pick(&known).clone();
        if self.wire.book().open().contains(&call) {
            self.wire.answer(call).await?;
        }
        let task = self.wire.book().task_of(&token).map(str::to_owned);
        Ok(task.map_or(ControlFlow::Break(()), ControlFlow::Continue))
    }

    async fn maybe_wait(&mut self, id: i64) -> Result<(), Gone> {
        if self.dice.percent(50) {
            self.wire.answer(id).await?;
        } else {
            self.open.push(id);
        }
        Ok(())
    }

    /// Everything comes to its end, is told, and is accounted for.
    async fn settle(&mut self) -> Result<(), Gone> {
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
            if *doubtful && task.is_none() {
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

    async fn end(&mut self, ending: Ending, config: &str) -> Faults {
        ending.begins(&mut self.wire, &self.room, self.server).await;
        // What is stopped must not be waited for when it was ourselves who stopped it.
        if self.weather == Weather::Stopped {
            self.weather.clears(&self.room, self.server);
        }
        let mut faults = Vec::new();
        match self.wire.ended(DISPOSAL).await {
            Ok(status) if ending.fits(status) => {}
            Ok(status) => faults.push(format!("the server ended with {status} ({:?})", status.signal())),
            Err(fault) => faults.push(fault),
        }
        faults.append(&mut self.wire.book().faults);
        faults.extend(self.nobody_is_left(ending).await);
        if ending == Ending::Killed {
            faults.extend(self.next_server_cleans_up(config).await);
        }
        let files = self.room.temporary_files();
        if !files.is_empty() {
            faults.push(format!("left on disk: {files:?}"));
        }
        let cgroups = facts::cgroups(self.server);
        if !cgroups.is_empty() {
            faults.push(format!("cgroups are left: {cgroups:?}"));
        }
        faults
    }

    async fn nobody_is_left(&self, ending: Ending) -> Faults {
        let limit = match ending {
            Ending::Killed => LEFT,
            // A guard may still be about to end when its supervisor already has.
            _ => Duration::from_secs(2),
        };
        let began = Instant::now();
        loop {
            let left = self.room.processes();
            if left.is_empty() {
                return Vec::new();
            }
            if began.elapsed() > limit {
                let left: Vec<String> = left.into_iter().map(facts::describe).collect();
                return vec![format!("{limit:?} after the server these live: {left:#?}")];
            }
            // sleep: the fact is polled.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Files of a server that was killed are there until the next one comes.
    async fn next_server_cleans_up(&mut self, config: &str) -> Faults {
        let Ok(mut next) = Wire::start(&self.room, config).await else {
            return vec!["the next server does not start".to_owned()];
        };
        next.close_input();
        next.ended(DISPOSAL).await.err().into_iter().collect()
    }

    fn next_token(&self) -> String {
        format!("{}{:03}", self.letter, self.writers.len())
    }

    fn log(&self) -> String {
        log(&self.room)
    }
}

/// The end of what the servers of a room logged.
fn log(room: &Room) -> String {
    let log = std::fs::read_to_string(room.home().join("stderr.log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

fn config(dice: &mut Dice) -> String {
    let mut config = format!(
        "[tasks]\nmax_concurrent_tasks_per_owner = {}\n[bash]\ngrace_ms = {}\ndrain_ms = {}\n",
        3 + dice.below(40),
        50 + dice.below(600),
        1 + dice.below(100),
    );
    config.push_str(&format!(
        "[tool_bash]\nleftover = \"{}\"\n",
        dice.pick(&["adopt", "adopt", "end"])
    ));
    if dice.percent(30) {
        config.push_str(&format!("stall_notice_ms = {}\n", 50 + dice.below(300)));
    }
    config
}
