//! One connection of the real binary: what its client does, what befalls it, how it ends.

mod after;
mod quiet;

use std::ops::ControlFlow;

use serde_json::json;
use tokio::task::JoinSet;

use super::book::Call;
use super::dice::Dice;
use super::ending::Ending;
use super::weather::Weather;
use super::wire::{Gone, Wire};
use super::writers::Writer;
use super::{Found, facts};
use crate::Room;

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
    /// Whether this step waits for its answer.
    waits: bool,
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
    let Ok(wire) = Wire::start(&room, &config, weather).await else {
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
        waits: true,
        later: JoinSet::new(),
        descriptors: 0,
    };
    let lived = connection.live(steps, ending).await;
    let mut faults = std::mem::take(&mut connection.wire.book().faults);
    if let Err(Gone) = lived {
        faults.push("the server has gone, and nobody asked it to".to_owned());
    }
    faults.extend(connection.after(ending, &config).await);
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
        // Rolled in any case, so that what comes after does not depend on the moment.
        self.waits = self.dice.percent(50);
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
        // Whom the weather stops goes on for nobody, so somebody has to end it.
        let timeout = match self.dice.percent(20) {
            true => 20 + self.dice.below(300),
            false => 5_000,
        };
        let id = self.start(writer, "bash", json!({"timeoutMs": timeout})).await?;
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

    /// Takes one of the last calls back, which may have been answered: whether it was is the machine's choice.
    async fn cancel(&mut self) -> Result<(), Gone> {
        let call = self.wire.last_call() - self.dice.below(3) as i64;
        // The first one stays, so that there is somebody to choose.
        for started in self
            .writers
            .iter_mut()
            .skip(1)
            .filter(|started| started.call == call)
        {
            started.doubtful = true;
        }
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

    async fn maybe_wait(&self, id: i64) -> Result<(), Gone> {
        if self.waits {
            self.wire.answer(id).await?;
        }
        Ok(())
    }

    fn next_token(&self) -> String {
        format!("{}{:03}", self.letter, self.writers.len())
    }

    fn log(&self) -> String {
        log(&self.room)
    }
}

/// The end of what the servers of a room logged.
pub(super) fn log(room: &Room) -> String {
    let log = std::fs::read_to_string(room.home().join("stderr.log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Limits of any kind.
pub(super) fn config(dice: &mut Dice) -> String {
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
