//! From the bytes of a file to a log, made whole again. Pure.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{StoreError, written::Position};
use crate::{Event, SessionHeader, TurnEnd, log::Log};

/// Tag of the first line.
const HEADER_KIND: &str = "session";

/// What a file holds.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) header: SessionHeader,
    /// With what ends an open turn.
    pub(super) log: Log,
    /// Up to where the file is good. The events behind that have to be written.
    pub(super) good: Position,
    pub(super) repair: Option<Repair>,
}

/// What was done to the log of a harness that died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// How many bytes at the end of the file hold no whole event; they are left out.
    pub torn_bytes: u64,
    /// How many events were added to end the open turn.
    pub closers: usize,
}

/// The first line.
#[derive(Serialize)]
struct HeaderLine<'a> {
    r#type: &'static str,
    version: u64,
    #[serde(flatten)]
    header: &'a SessionHeader,
}

/// As much of the first line as all versions have.
#[derive(Deserialize)]
struct Preamble {
    r#type: String,
    version: Value,
}

/// As much of a line as says what sort of event it is.
#[derive(Deserialize)]
struct Kind {
    r#type: String,
}

pub(super) fn header_line(header: &SessionHeader) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&HeaderLine {
        r#type: HEADER_KIND,
        version: SessionHeader::VERSION,
        header,
    })?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a log. What comes after its last turn and is no event is left out; a turn that is open is closed. Anything
/// else that is wrong is an error.
pub(super) fn load(path: &Path, bytes: &[u8]) -> Result<Loaded, StoreError> {
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let header = read_header(path, first)?;
    let mut loaded = Loaded {
        header,
        log: Log::default(),
        good: Position {
            bytes: first.len() as u64,
            events: 0,
        },
        repair: None,
    };
    let mut read = first.len();
    let mut torn_bytes = 0;
    for (line, number) in lines.zip(2..) {
        match loaded.read_event(line) {
            Ok(()) => read += line.len(),
            Err(_) if !holds_turn_end(&bytes[read..]) => {
                torn_bytes = (bytes.len() - read) as u64;
                break;
            }
            Err(why) => {
                let path = path.to_owned();
                return Err(StoreError::Corrupt {
                    path,
                    line: number,
                    why,
                });
            }
        }
    }
    let now = loaded.log.last_time();
    let closers = loaded.log.wind_up(now, TurnEnd::Interrupted);
    if torn_bytes > 0 || closers > 0 {
        loaded.repair = Some(Repair { torn_bytes, closers });
    }
    Ok(loaded)
}

fn read_header(path: &Path, line: &[u8]) -> Result<SessionHeader, StoreError> {
    let no_header = |why: String| {
        let path = path.to_owned();
        StoreError::NoHeader { path, why }
    };
    if line.last() != Some(&b'\n') {
        return Err(no_header("it is not complete".to_owned()));
    }
    let preamble: Preamble = serde_json::from_slice(line).map_err(|error| no_header(error.to_string()))?;
    if preamble.r#type != HEADER_KIND {
        return Err(no_header(format!("its type is {:?}", preamble.r#type)));
    }
    if preamble.version != SessionHeader::VERSION {
        return Err(StoreError::Version {
            path: path.to_owned(),
            found: preamble.version.to_string(),
        });
    }
    let header: SessionHeader = serde_json::from_slice(line).map_err(|error| no_header(error.to_string()))?;
    match &header.cwd {
        Some(cwd) if !cwd.is_absolute() => Err(no_header(format!("cwd {cwd:?} is not absolute"))),
        Some(_) | None => Ok(header),
    }
}

fn holds_turn_end(bytes: &[u8]) -> bool {
    bytes.split(|&byte| byte == b'\n').any(|line| {
        let kind = serde_json::from_slice::<Kind>(line);
        kind.is_ok_and(|kind| kind.r#type == "turn/end")
    })
}

impl Loaded {
    /// Takes a line that is the next event; otherwise says why it is not.
    fn read_event(&mut self, line: &[u8]) -> Result<(), String> {
        let event: Event = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let expected = self.log.len();
        if event.seq != expected {
            return Err(format!("event {} where event {expected} was expected", event.seq));
        }
        if event.time < self.log.last_time() {
            return Err(format!("event {expected} is older than the one before"));
        }
        let appended = self.log.append(event.time, event.data);
        appended.map_err(|error| error.to_string())?;
        // The last line may lack its end. It is written once more then.
        if line.last() == Some(&b'\n') {
            self.good.bytes += line.len() as u64;
            self.good.events += 1;
        }
        Ok(())
    }
}
