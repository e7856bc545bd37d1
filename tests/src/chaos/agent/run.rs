//! A life of `dsh run`: one session, and one program after the other that goes on with it.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::log::Log;
use super::plan::{Fate, Generation, Stderr};
use super::script::Author;
use super::stream::Stream;
use crate::Room;
use crate::chaos::dice::Dice;
use crate::chaos::facts::signal;
use crate::chaos::left::{self, AFTERWARDS, DISPOSAL, LEFT};
use crate::chaos::server::config;
use crate::chaos::weather::Weather;
use crate::chaos::{Faults, Found};

/// How long a program may take that is not asked to end. A foreground command of which a process was stopped goes on until
/// its timeout, and there may be one in each step.
const ITSELF: Duration = Duration::from_secs(150);

/// A session, and where it is kept.
struct Life {
    room: Room,
    /// Its id, once it is known.
    session: Option<String>,
}

/// How a program ended, and what it had said.
struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    pid: u32,
}

/// A life of `dsh run`, made up and lived.
pub(in crate::chaos) async fn session(letter: char, mut dice: Dice) -> Found {
    let mut author = Author::new(letter);
    let config = config(&mut dice);
    let generations = plan(&mut author, &mut dice);
    let mut life = Life {
        room: Room::new(),
        session: None,
    };
    let mut about = vec![format!("run {letter}: {config:?}")];
    let mut faults: Faults = super::configure(&life.room, &config).err().into_iter().collect();
    for generation in generations {
        about.push(generation.about());
        faults.extend(life.lives(generation).await);
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
pub(super) fn plan(author: &mut Author, dice: &mut Dice) -> Vec<Generation> {
    let generations = 1 + dice.below(3);
    (0..generations).map(|_| Generation::any(author, dice)).collect()
}

impl Life {
    /// Lives one program, whatever befalls it.
    async fn lives(&mut self, mut generation: Generation) -> Faults {
        let ended = match self.runs(&mut generation).await {
            Ok(ended) => ended,
            Err(fault) => return vec![fault],
        };
        let was_killed = ended.status.signal() == Some(Signal::KILL.as_raw());
        let mut faults = left::processes(&self.room, if was_killed { LEFT } else { AFTERWARDS }).await;
        // What a killed one has left on the disk is there until the next one comes, that has the same disk.
        if !was_killed && generation.weather != Weather::Full {
            faults.extend(left::things(&self.room, ended.pid));
        }
        faults.extend(self.judge(&generation, &ended));
        faults
    }

    /// The last one, in peace. Returns how many tasks there were.
    async fn settles(&mut self, author: &mut Author, dice: &mut Dice) -> Result<usize, Faults> {
        let known = match self.log() {
            Ok(log) => log.map_or(0, |log| log.greatest()),
            Err(fault) => return Err(vec![fault]),
        };
        let mut generation = Generation::settling(author, dice, known);
        let ended = self.runs(&mut generation).await.map_err(|fault| vec![fault])?;
        let mut faults = left::processes(&self.room, AFTERWARDS).await;
        faults.extend(left::things(&self.room, ended.pid));
        faults.extend(self.judge(&generation, &ended));
        if ended.status.code() != Some(0) {
            faults.push(format!(
                "it is not well in the end: {}",
                String::from_utf8_lossy(&ended.stdout)
            ));
        }
        let story = self.log().map(|log| log.map(|log| log.story()));
        match story {
            Ok(Some(story)) => {
                faults.extend(story.at_rest(&generation.script.writers, &self.room));
                if faults.is_empty() {
                    Ok(story.tasks())
                } else {
                    Err(faults)
                }
            }
            Ok(None) => Err(vec!["there is no log in the end".to_owned()]),
            Err(fault) => Err(vec![fault]),
        }
    }

    /// Runs a program to its end.
    async fn runs(&self, generation: &mut Generation) -> Result<Ended, String> {
        let (mut child, mut reader) = self
            .starts(generation)
            .map_err(|error| format!("no dsh: {error}"))?;
        let pid = child.id().ok_or("it has gone at once")?;
        let (began, mut later) = (Instant::now(), JoinSet::new());
        let mut due = vec![generation.after];
        due.extend(generation.again.map(|again| generation.after + again));
        let limit = match generation.fate {
            Fate::Asked(_) | Fate::Killed => generation.after + DISPOSAL,
            Fate::Itself | Fate::Unread(_) => ITSELF,
        };
        let status = loop {
            if let Ok(status) = timeout(Duration::from_millis(20), child.wait()).await {
                break status.map_err(|error| error.to_string())?;
            }
            let now = began.elapsed();
            if now > limit {
                return Err(format!("it does not end within {limit:?}"));
            }
            if now < generation.after {
                let weather = generation.weather;
                weather.strikes(&self.room, pid, &mut generation.dice, &mut later);
            } else if due.first().is_some_and(|due| *due <= now) {
                due.remove(0);
                generation.weather.clears(&self.room, pid);
                generation.fate.comes(&self.room, pid);
            } else if generation.weather == Weather::Stopped {
                // Somebody may have stopped it just before.
                generation.weather.clears(&self.room, pid);
            }
        };
        let stdout = timeout(DISPOSAL, reader.join_next()).await;
        let stdout = stdout.map_err(|_| "its output does not end with it")?;
        Ok(Ended {
            status,
            stdout: stdout.and_then(Result::ok).unwrap_or_default(),
            pid,
        })
    }

    fn starts(&self, generation: &Generation) -> std::io::Result<(Child, JoinSet<Vec<u8>>)> {
        let script = json!({"turns": generation.script.turns}).to_string();
        std::fs::write(self.room.file("model.json"), script)?;
        let mut command = generation.weather.dsh(&self.room);
        command.args([
            "run",
            "go on",
            "--model",
            "scripted:model.json",
            "--session",
            "s.jsonl",
        ]);
        command.args([
            "--output-format",
            "stream-json",
            "--linger",
            &generation.linger.to_string(),
        ]);
        // One that was killed in its first moments has no session yet.
        if self.room.file("s.jsonl").exists() {
            command.arg("--resume");
        }
        let stderr = match generation.stderr {
            Stderr::Logged => {
                let mut open = std::fs::OpenOptions::new();
                let log = open
                    .append(true)
                    .create(true)
                    .open(self.room.home().join("stderr.log"))?;
                Stdio::from(log)
            }
            Stderr::Closed => Stdio::piped(),
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()?;
        drop(child.stderr.take());
        let stdout = child.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        let most = match generation.fate {
            Fate::Unread(most) => most as u64,
            Fate::Itself | Fate::Asked(_) | Fate::Killed => u64::MAX,
        };
        let mut reader = JoinSet::new();
        reader.spawn(read(stdout, most));
        Ok((child, reader))
    }

    /// Whether all of that goes together: how it ended, what it said, what is in the log.
    fn judge(&mut self, generation: &Generation, ended: &Ended) -> Faults {
        let stream = match Stream::read(&ended.stdout) {
            Ok(stream) => stream,
            Err(fault) => return vec![fault],
        };
        let mut faults = stream.check(self.session.as_deref());
        faults.extend(end(generation, ended.status, &stream).err());
        let log = match self.log() {
            Ok(log) => log,
            Err(fault) => return [faults, vec![fault]].concat(),
        };
        let Some(log) = log else {
            if !stream.is_empty() && generation.weather != Weather::Disk {
                faults.push("a session was shown, and there is none".to_owned());
            }
            return faults;
        };
        self.session = Some(log.session.clone());
        faults.extend(log.story().faults());
        // What a disk does not take is told, and shown.
        if generation.weather != Weather::Disk {
            faults.extend(stream.check_log(&log));
            if ended.status.code().is_some() && !log.is_closed() {
                faults.push("the log was not closed".to_owned());
            }
        }
        faults
    }

    fn log(&self) -> Result<Option<Log>, String> {
        Log::read(&self.room.file("s.jsonl"))
    }
}

impl Fate {
    fn comes(self, room: &Room, pid: u32) {
        match self {
            Fate::Itself | Fate::Unread(_) => {}
            Fate::Asked(which) => _ = signal(room, pid, which),
            Fate::Killed => _ = signal(room, pid, Signal::KILL),
        }
    }
}

/// Whether a program ends in this way then, with these words.
fn end(generation: &Generation, status: ExitStatus, stream: &Stream) -> Result<(), String> {
    let result = stream.result().and_then(|result| result["status"].as_str());
    let wrong = || {
        let result = stream.result();
        Err(format!(
            "{:?}: it ended with {status} and said {result:?}",
            generation.fate
        ))
    };
    // Where there is no disk or no descriptor it may not even begin.
    let is_poor = matches!(generation.weather, Weather::Disk | Weather::Descriptors);
    let by_itself = match (status.code(), result) {
        (Some(0), Some("completed")) => stream.is_whole(),
        (Some(1), Some("failed")) => stream.is_whole(),
        // Also what it is told to read may not be readable then.
        (Some(1 | 2), None) => is_poor,
        _ => false,
    };
    let fits = match generation.fate {
        Fate::Itself => by_itself,
        Fate::Killed => by_itself || status.signal() == Some(Signal::KILL.as_raw()),
        // All that it wrote may have been in the pipe before nobody read it any more.
        Fate::Unread(_) => by_itself || matches!(status.code(), Some(0 | 1)) && result.is_none(),
        Fate::Asked(which) => {
            let asked = status.code() == Some(128 + which.as_raw());
            let told = matches!(result, Some("cancelled" | "completed" | "failed")) && stream.is_whole();
            // It had ended already, or it had not even begun.
            let before = stream.is_empty() && (asked || status.signal() == Some(which.as_raw()));
            by_itself || before || asked && (told || is_poor)
        }
    };
    if fits { Ok(()) } else { wrong() }
}

/// Reads it all, or so much of it and no more.
async fn read(stdout: ChildStdout, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What came before an error is what came.
    let _ = stdout.take(most).read_to_end(&mut bytes).await;
    bytes
}
