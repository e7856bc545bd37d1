//! What a model answers: turns with random calls, and what becomes of what they start.

use std::ops::Range;

use serde_json::{Value, json};

use crate::chaos::dice::Dice;
use crate::chaos::writers::Writer;

/// The answers of a model, in order.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) turns: Vec<Value>,
    /// What its commands are.
    pub(super) writers: Vec<Writer>,
}

/// Who writes the scripts of one life: no two of its commands and calls have the same name.
#[derive(Debug)]
pub(super) struct Author {
    letter: char,
    commands: usize,
    calls: usize,
    texts: usize,
}

/// What a script may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Play {
    /// Also answers that fail, that are cut off, and that never come.
    Anything,
    /// Nothing that ends a turn before its time.
    Plain,
}

impl Author {
    pub(super) fn new(letter: char) -> Author {
        Author {
            letter,
            commands: 0,
            calls: 0,
            texts: 0,
        }
    }

    /// A script of so many turns.
    pub(super) fn random(&mut self, dice: &mut Dice, play: Play, turns: usize) -> Script {
        let mut script = Script::default();
        for _ in 0..turns {
            let turn = match dice.below(100) {
                0..45 => self.commands(dice, &mut script.writers),
                45..78 => self.looks(dice),
                78..88 => json!({}),
                _ if play == Play::Plain => self.looks(dice),
                88..92 => {
                    json!({"error": {"message": "the model is away", "retry": dice.pick(&["never", "later"])}})
                }
                92..94 => json!({"cut": true}),
                94..96 => json!({"finish": "max-tokens"}),
                _ => json!({"hang": true}),
            };
            let turn = self.with_text(turn, dice);
            script.turns.push(turn);
        }
        script.turns.push(self.says());
        script
    }

    /// A script that ends every task that there may be, and reads all of it.
    pub(super) fn settling(&mut self, dice: &mut Dice, known: usize) -> Script {
        let turns = 1 + dice.below(4);
        let mut script = self.random(dice, Play::Plain, turns);
        // An answer without a call is the end of a turn: who settles goes on to the end.
        script.turns.retain(|turn| !turn["tool_calls"].is_null());
        let all = 1..known + script.writers.len() + 1;
        let some: Vec<usize> = all.clone().filter(|_| dice.percent(60)).collect();
        let turns = [
            self.on(some, "task_kill", &json!({})),
            self.on(
                all.clone(),
                "task_output",
                &json!({"wait": true, "timeout_ms": 700}),
            ),
            self.on(all.clone(), "task_kill", &json!({"reason": "the end"})),
            self.on(
                all.clone(),
                "task_output",
                &json!({"wait": true, "timeout_ms": 30_000}),
            ),
            self.reads(all.clone()),
            self.reads(all.clone()),
            self.reads(all),
            self.says(),
        ];
        let empty = json!([]);
        script
            .turns
            .extend(turns.into_iter().filter(|turn| turn["tool_calls"] != empty));
        script
    }

    /// Answers that do nothing, for whoever is asked once more.
    pub(super) fn says(&mut self) -> Value {
        self.texts += 1;
        json!({"text": format!("This is text {}{}.", self.letter, self.texts)})
    }

    fn reads(&mut self, ids: Range<usize>) -> Value {
        self.on(ids, "task_output", &json!({}))
    }

    /// Begins one command or more.
    fn commands(&mut self, dice: &mut Dice, writers: &mut Vec<Writer>) -> Value {
        let calls = (0..1 + dice.below(3)).map(|_| {
            let token = format!("{}{:03}", self.letter, self.commands);
            self.commands += 1;
            let mut arguments = json!({"description": "write numbered lines"});
            let writer = if dice.percent(60) {
                arguments["run_in_background"] = json!(true);
                if dice.percent(15) {
                    arguments["timeoutMs"] = json!(50 + dice.below(1500));
                }
                Writer::any(token, dice)
            } else {
                // Whom the weather stops goes on for nobody, so somebody has to end it.
                arguments["timeoutMs"] = match dice.percent(20) {
                    true => json!(20 + dice.below(300)),
                    false => json!(5_000),
                };
                Writer::short(token, dice)
            };
            arguments["command"] = json!(writer.command);
            writers.push(writer);
            self.call("bash", arguments)
        });
        json!({"tool_calls": calls.collect::<Vec<Value>>()})
    }

    /// Asks for one task or more, or for all of them. Never beside a start: what is asked for has been told of.
    fn looks(&mut self, dice: &mut Dice) -> Value {
        let calls = (0..1 + dice.below(3)).map(|_| {
            let id = 1 + dice.below(self.commands.max(1));
            match dice.below(10) {
                0..4 => self.about(id, "task_output", &json!({})),
                4..6 => {
                    let wait = json!({"wait": true, "timeout_ms": 1 + dice.below(400)});
                    self.about(id, "task_output", &wait)
                }
                6..9 => self.about(id, "task_kill", &json!({"reason": "chaos"})),
                _ => self.call("task_list", json!({})),
            }
        });
        json!({"tool_calls": calls.collect::<Vec<Value>>()})
    }

    fn on(&mut self, ids: impl IntoIterator<Item = usize>, tool: &str, more: &Value) -> Value {
        let calls = ids.into_iter().map(|id| self.about(id, tool, more));
        json!({"tool_calls": calls.collect::<Vec<Value>>()})
    }

    fn about(&mut self, id: usize, tool: &str, more: &Value) -> Value {
        let mut arguments = more.clone();
        arguments["task_id"] = json!(format!("bash-{id}"));
        self.call(tool, arguments)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.calls += 1;
        json!({"id": format!("{}-{}", self.letter, self.calls), "name": tool, "arguments": arguments})
    }

    fn with_text(&mut self, mut turn: Value, dice: &mut Dice) -> Value {
        let is_empty = turn.as_object().is_some_and(serde_json::Map::is_empty);
        if dice.percent(40) || is_empty || turn["finish"] == "max-tokens" {
            turn["text"] = self.says()["text"].take();
        }
        turn
    }
}
