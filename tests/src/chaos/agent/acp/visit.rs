//! What an editor does in one visit: what it is made up of, and how it is played.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::Life;
use crate::chaos::agent::editor::Editor;
use crate::chaos::agent::script::{Author, Play, Script};
use crate::chaos::dice::Dice;
use crate::chaos::ending::Ending;
use crate::chaos::weather::Weather;
use crate::chaos::wire::{Gone, PATIENCE};

/// What an editor does, and what befalls its agent.
#[derive(Debug)]
pub(in crate::chaos::agent) struct Visit {
    pub(super) scripts: Vec<Script>,
    pub(super) steps: Vec<Step>,
    pub(super) weather: Weather,
    pub(super) ending: Ending,
    /// For what befalls the agent.
    pub(super) dice: Dice,
}

/// One thing that an editor does.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) session: usize,
    pub(super) act: Act,
    pub(super) pause: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Prompt,
    Cancel,
    /// Waits for the answer to a prompt, so long.
    Wait(Duration),
    Close,
    /// Opens it again, or once more.
    Open,
    List,
    /// Reads nothing for so long.
    Deaf(Duration),
}

impl Visit {
    pub(super) fn any(author: &mut Author, dice: &mut Dice, sessions: usize) -> Visit {
        let scripts = (0..sessions).map(|_| {
            let turns = 4 + dice.below(12);
            let mut script = author.random(dice, Play::Anything, turns);
            // Whoever asks once more is answered.
            script.turns.extend((0..30).map(|_| author.says()));
            script
        });
        let scripts = scripts.collect();
        let steps = 5 + dice.below(20);
        Visit {
            scripts,
            steps: (0..steps).map(|_| Step::any(dice, sessions)).collect(),
            weather: Weather::any(dice),
            ending: Ending::any(dice),
            dice: dice.fork(),
        }
    }

    /// It in a few words.
    pub(super) fn about(&self) -> String {
        let steps = self.steps.iter();
        let steps: Vec<String> = steps
            .map(|step| format!("{:?} {}", step.act, step.session))
            .collect();
        format!("{:?}, {:?}, {}", self.weather, self.ending, steps.join(", "))
    }
}

impl Step {
    fn any(dice: &mut Dice, sessions: usize) -> Step {
        let time = dice.millis(800);
        Step {
            session: dice.below(sessions),
            act: match dice.below(100) {
                0..45 => Act::Prompt,
                45..62 => Act::Cancel,
                62..78 => Act::Wait(time),
                78..84 => Act::Close,
                84..92 => Act::Open,
                92..96 => Act::List,
                _ => Act::Deaf(time),
            },
            pause: dice.millis(250),
        }
    }
}

impl Life {
    /// Plays a visit, up to its ending.
    pub(super) async fn plays(
        &mut self,
        editor: &mut Editor,
        pid: u32,
        visit: &mut Visit,
    ) -> Result<(), Gone> {
        let mut later = JoinSet::new();
        for step in &visit.steps {
            visit
                .weather
                .strikes(&self.room, pid, &mut visit.dice, &mut later);
            self.step(editor, step).await?;
            // sleep: what happens between two steps is as random as the steps.
            tokio::time::sleep(step.pause).await;
        }
        if visit.ending.is_abrupt() {
            return Ok(());
        }
        while later.join_next().await.is_some() {}
        visit.weather.clears(&self.room, pid);
        for session in 0..self.sessions.len() {
            self.cancels(editor, session).await?;
            self.is_answered(editor, session, PATIENCE).await?;
            if self.sessions[session].prompt.is_some() {
                let fault = format!("a prompt of session {session} was not answered");
                editor.heard().faults.push(fault);
            }
        }
        Ok(())
    }

    async fn step(&mut self, editor: &mut Editor, step: &Step) -> Result<(), Gone> {
        let session = step.session;
        match step.act {
            Act::Prompt => self.prompts(editor, session).await,
            Act::Cancel => self.cancels(editor, session).await,
            Act::Wait(time) => self.is_answered(editor, session, time).await,
            Act::Close => self.closes(editor, session).await,
            Act::Open if self.sessions[session].is_open => self.opens_twice(editor, session).await,
            Act::Open => self.opens(editor, session).await,
            Act::List => editor.call("session/list", json!({})).await.map(drop),
            Act::Deaf(time) => {
                editor.be_deaf(time);
                Ok(())
            }
        }
    }

    /// Asks for something, unless something was asked for that is not answered.
    pub(super) async fn prompts(&mut self, editor: &mut Editor, session: usize) -> Result<(), Gone> {
        self.is_answered(editor, session, Duration::ZERO).await?;
        let place = &mut self.sessions[session];
        if place.is_open && place.prompt.is_none() {
            let prompt = json!([{"type": "text", "text": "go on"}]);
            let params = json!({"sessionId": place.id, "prompt": prompt});
            place.prompt = Some(editor.asks("session/prompt", params).await?);
        }
        Ok(())
    }

    async fn cancels(&mut self, editor: &mut Editor, session: usize) -> Result<(), Gone> {
        let id = json!({"sessionId": self.sessions[session].id});
        editor.tells("session/cancel", id).await
    }

    /// Takes the answer to a prompt, if it comes within this time.
    async fn is_answered(&mut self, editor: &Editor, session: usize, limit: Duration) -> Result<(), Gone> {
        let Some(prompt) = self.sessions[session].prompt else {
            return Ok(());
        };
        let Some(answer) = editor.answer(prompt, limit).await? else {
            return Ok(());
        };
        self.sessions[session].prompt = None;
        let stop = answer["result"]["stopReason"].as_str();
        let error = answer["error"]["message"].as_str().unwrap_or_default();
        let is_known = matches!(stop, Some("end_turn" | "cancelled" | "max_tokens"));
        if !is_known && !error.starts_with("Internal error: turn failed: ") {
            editor
                .heard()
                .faults
                .push(format!("a prompt was answered with {answer}"));
        }
        Ok(())
    }

    async fn closes(&mut self, editor: &mut Editor, session: usize) -> Result<(), Gone> {
        let place = &mut self.sessions[session];
        if !place.is_open {
            return Ok(());
        }
        place.is_open = false;
        let answer = editor
            .call("session/close", json!({"sessionId": place.id}))
            .await?;
        if !answer["result"].is_object() {
            self.refused(editor, "a session was not closed", &answer);
        }
        // Whoever closes a session answers what it was asked.
        self.is_answered(editor, session, PATIENCE).await
    }

    async fn opens_twice(&mut self, editor: &mut Editor, session: usize) -> Result<(), Gone> {
        let params =
            json!({"sessionId": self.sessions[session].id, "cwd": self.room.work(), "mcpServers": []});
        let answer = editor.call("session/load", params).await?;
        if answer["error"].is_null() {
            editor
                .heard()
                .faults
                .push("an open session was opened".to_owned());
        }
        Ok(())
    }
}
