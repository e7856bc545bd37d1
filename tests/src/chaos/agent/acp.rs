//! A life of `dsh acp`: some sessions, and one agent after the other that goes on with them.

mod visit;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use self::visit::Visit;
use super::editor::Editor;
use super::log::Log;
use super::script::{Author, Script};
use crate::Room;
use crate::chaos::dice::Dice;
use crate::chaos::ending::Ending;
use crate::chaos::left::{self, AFTERWARDS, DISPOSAL, LEFT};
use crate::chaos::server::config;
use crate::chaos::weather::Weather;
use crate::chaos::wire::Gone;
use crate::chaos::{Faults, Found};

/// The most commands that one session can start in the script by which it settles.
const SETTLING: usize = 12;
/// How long a session may take to settle.
const QUIET: Duration = Duration::from_secs(120);

/// Some sessions, and where they are kept.
struct Life {
    room: Room,
    sessions: Vec<Place>,
    weather: Weather,
}

/// One session.
#[derive(Debug, Default)]
struct Place {
    id: Option<String>,
    is_open: bool,
    /// The prompt that was not seen answered.
    prompt: Option<i64>,
}

/// A life of `dsh acp`, made up and lived.
pub(in crate::chaos) async fn sessions(letter: char, mut dice: Dice) -> Found {
    let mut author = Author::new(letter);
    let sessions = 1 + dice.below(3);
    let config = models(sessions) + &config(&mut dice);
    let visits = plan(&mut author, &mut dice, sessions);
    let mut life = Life {
        room: Room::new(),
        sessions: (0..sessions).map(|_| Place::default()).collect(),
        weather: Weather::Fair,
    };
    let mut about = vec![format!("acp {letter}: {sessions} sessions, {config:?}")];
    let mut faults: Faults = super::configure(&life.room, &config).err().into_iter().collect();
    for visit in visits {
        about.push(visit.about());
        faults.extend(life.lives(visit).await);
        if !faults.is_empty() {
            return super::report(&life.room, about, faults);
        }
    }
    about.push("and settles".to_owned());
    match life.settles(&mut author, &mut dice).await {
        Ok(tasks) => Found {
            tasks,
            faults: Vec::new(),
        },
        Err(faults) => super::report(&life.room, about, faults),
    }
}

/// All of a life but its last program.
pub(super) fn plan(author: &mut Author, dice: &mut Dice, sessions: usize) -> Vec<Visit> {
    let visits = 1 + dice.below(2);
    (0..visits).map(|_| Visit::any(author, dice, sessions)).collect()
}

/// Each session has a model of its own, so that what it answers does not depend on the others.
fn models(sessions: usize) -> String {
    let choices: Vec<String> = (1..sessions)
        .map(|session| format!("\"m{session}.json\""))
        .collect();
    format!(
        "[model]\nprovider = \"scripted\"\nname = \"m0.json\"\nchoices = [{}]\n",
        choices.join(", ")
    )
}

impl Life {
    /// Lives one program, whatever befalls it.
    async fn lives(&mut self, mut visit: Visit) -> Faults {
        self.weather = visit.weather;
        let mut editor = match self.starts(&visit.scripts).await {
            Ok(editor) => editor,
            Err(fault) => return vec![fault],
        };
        let Some(pid) = editor.pid() else {
            return vec!["the agent has gone at once".to_owned()];
        };
        let lived = self.plays(&mut editor, pid, &mut visit).await;
        self.weather.clears(&self.room, pid);
        let mut faults = Vec::new();
        if lived.is_err() {
            faults.push("the agent has gone, and nobody asked it to".to_owned());
        }
        faults.extend(self.ends(editor, pid, visit.ending).await);
        faults
    }

    /// The last one, in peace. Returns how many tasks there were.
    async fn settles(&mut self, author: &mut Author, dice: &mut Dice) -> Result<usize, Faults> {
        self.weather = Weather::Fair;
        let known = match self.logs() {
            Ok(logs) => logs.iter().flatten().map(Log::greatest).max().unwrap_or(0),
            Err(fault) => return Err(vec![fault]),
        };
        let known = known + SETTLING * (self.sessions.len() - 1);
        let scripts = (0..self.sessions.len()).map(|_| {
            let mut script = author.settling(dice, known);
            script.turns.extend((0..10).map(|_| author.says()));
            script
        });
        let scripts: Vec<Script> = scripts.collect();
        let mut editor = self.starts(&scripts).await.map_err(|fault| vec![fault])?;
        let pid = editor
            .pid()
            .ok_or_else(|| vec!["the agent has gone at once".to_owned()])?;
        let mut faults = match self.prompts_all(&mut editor).await {
            Ok(faults) => faults,
            Err(Gone) => vec!["the agent has gone while it settled".to_owned()],
        };
        faults.extend(self.ends(editor, pid, Ending::Quiet).await);
        let mut tasks = 0;
        match self.logs() {
            Ok(logs) => {
                for (log, script) in logs.iter().zip(&scripts) {
                    let Some(log) = log else {
                        faults.push("a session has no log in the end".to_owned());
                        continue;
                    };
                    let story = log.story();
                    tasks += story.tasks();
                    faults.extend(story.at_rest(&script.writers, &self.room));
                }
            }
            Err(fault) => faults.push(fault),
        }
        if faults.is_empty() { Ok(tasks) } else { Err(faults) }
    }

    /// Starts an agent with these models, and opens every session.
    async fn starts(&mut self, scripts: &[Script]) -> Result<Editor, String> {
        for (session, script) in scripts.iter().enumerate() {
            let script = json!({"turns": script.turns}).to_string();
            let written = std::fs::write(self.room.file(&format!("m{session}.json")), script);
            written.map_err(|error| format!("no model: {error}"))?;
        }
        let gone = |Gone| "the agent does not start".to_owned();
        let mut editor = Editor::start(&self.room, self.weather).await.map_err(gone)?;
        for session in 0..self.sessions.len() {
            self.sessions[session].is_open = false;
            self.sessions[session].prompt = None;
            self.opens(&mut editor, session).await.map_err(gone)?;
        }
        let faults = std::mem::take(&mut editor.heard().faults);
        if faults.is_empty() {
            Ok(editor)
        } else {
            Err(faults.join("\n"))
        }
    }

    /// Opens a session: the one that there was, if it was kept.
    async fn opens(&mut self, editor: &mut Editor, session: usize) -> Result<(), Gone> {
        let cwd = self.room.work();
        let kept = self.sessions[session]
            .id
            .clone()
            .filter(|id| self.file(id).exists());
        let answer = match &kept {
            Some(id) => {
                let params = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
                editor.call("session/load", params).await?
            }
            None => {
                editor
                    .call("session/new", json!({"cwd": cwd, "mcpServers": []}))
                    .await?
            }
        };
        let new = answer["result"]["sessionId"].as_str().map(str::to_owned);
        let Some(id) = kept.or(new).filter(|_| answer["result"].is_object()) else {
            self.refused(editor, "a session was not opened", &answer);
            return Ok(());
        };
        let choice =
            json!({"sessionId": id, "configId": "model", "value": format!("scripted/m{session}.json")});
        let chosen = editor.call("session/set_config_option", choice).await?;
        if !chosen["result"].is_object() {
            self.refused(editor, "a model was not chosen", &chosen);
        }
        self.sessions[session] = Place {
            id: Some(id),
            is_open: true,
            prompt: None,
        };
        Ok(())
    }

    /// What only a poor system may refuse.
    fn refused(&self, editor: &Editor, what: &str, answer: &Value) {
        if !matches!(self.weather, Weather::Disk | Weather::Descriptors) {
            editor.heard().faults.push(format!("{what}: {answer}"));
        }
    }

    /// Every session does what its script says.
    async fn prompts_all(&mut self, editor: &mut Editor) -> Result<Faults, Gone> {
        let mut faults = Vec::new();
        for session in 0..self.sessions.len() {
            self.prompts(editor, session).await?;
        }
        for place in &self.sessions {
            let Some(prompt) = place.prompt else { continue };
            match editor.answer(prompt, QUIET).await? {
                Some(answer) if answer["result"]["stopReason"] == "end_turn" => {}
                Some(answer) => faults.push(format!("{:?} ended with {answer}", place.id)),
                None => faults.push(format!("{:?} does not settle", place.id)),
            }
        }
        Ok(faults)
    }

    /// Ends the agent, and looks for what is left of it.
    async fn ends(&mut self, mut editor: Editor, pid: u32, ending: Ending) -> Faults {
        ending.begins(&mut editor, &self.room, pid).await;
        if self.weather == Weather::Stopped {
            // Somebody may have stopped it just before.
            self.weather.clears(&self.room, pid);
        }
        let mut faults = Vec::new();
        match editor.ended(DISPOSAL).await {
            Ok(status) if ending.fits(status) => {}
            Ok(status) => faults.push(format!("the agent ended with {status}")),
            Err(fault) => faults.push(fault),
        }
        faults.append(&mut editor.heard().faults);
        if ending == Ending::Quiet && !editor.heard().unanswered().is_empty() {
            faults.push(format!("without an answer: {:?}", editor.heard().unanswered()));
        }
        let was_killed = ending == Ending::Killed;
        faults.extend(left::processes(&self.room, if was_killed { LEFT } else { AFTERWARDS }).await);
        // What a killed one has left on the disk is there until the next one comes, that has the same disk.
        if !was_killed && self.weather != Weather::Full {
            faults.extend(left::things(&self.room, pid));
        }
        faults.extend(self.judge(&editor, ending));
        faults
    }

    /// Whether what was shown is in the logs, and these are logs.
    fn judge(&self, editor: &Editor, ending: Ending) -> Faults {
        let logs = match self.logs() {
            Ok(logs) => logs,
            Err(fault) => return vec![fault],
        };
        let mut faults = Vec::new();
        for log in logs.iter().flatten() {
            faults.extend(log.story().faults());
            // What a disk does not take is told, and shown.
            if self.weather == Weather::Disk {
                continue;
            }
            if ending != Ending::Killed && !log.is_closed() {
                faults.push(format!("the log of {} was not closed", log.session));
            }
            let heard = editor.heard();
            let updates = heard.updates.iter().map(|update| &update["params"]);
            let shown = updates.filter(|params| params["sessionId"] == log.session.as_str());
            let lost = shown
                .filter_map(|params| started(&params["update"]))
                .find(|text| !log.has("tool/result", text));
            faults.extend(lost.map(|text| format!("was shown, and is not in the log: {text:?}")));
        }
        faults
    }

    fn file(&self, id: &str) -> PathBuf {
        self.room.home().join("sessions").join(format!("{id}.jsonl"))
    }

    fn logs(&self) -> Result<Vec<Option<Log>>, String> {
        let ids = self.sessions.iter().map(|place| place.id.as_deref());
        ids.map(|id| id.map_or(Ok(None), |id| Log::read(&self.file(id))))
            .collect()
    }
}

/// The result that an update shows of the start of a task.
fn started(update: &Value) -> Option<&str> {
    let blocks = update["content"].as_array().into_iter().flatten();
    let mut texts = blocks.filter_map(|block| block["content"]["text"].as_str());
    texts.find(|text| text.starts_with("started background task "))
}
