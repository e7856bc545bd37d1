//! A file of events: whatever happens to its end, what stands before is read again, and nothing is left out in silence.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use dsh_llm::{AssistantBlock, CallId, ContentBlock, FinishReason, RequestHeader, Sampling, ToolCall, Usage};
use dsh_session::{
    Durability, Event, EventData, HeaderReason, Message, Session, SessionFile, SessionHeader, SessionId,
    StoreError, TurnEnd, TurnTrigger,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::input::Input;

thread_local! {
    static PLACE: OnceCell<(TempDir, Runtime)> = const { OnceCell::new() };
}

/// How many of the files are made up: the rest are written by the store, and then harmed.
const MADE_UP: u8 = 32;

/// What a session does, then what happens to its file.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.byte();
    let path = path();
    let _ = fs::remove_file(&path);
    let original = write(&path, &mut input);
    let whole = original.bytes.len();
    let (bytes, from) = match kind {
        _ if kind < MADE_UP => {
            let header = original.line_end(0);
            ([&original.bytes[..header], input.rest()].concat(), header)
        }
        // Cut anywhere; torn anywhere; written on by somebody else.
        _ => {
            let from = input.number() % (whole + 1);
            let garbage = input.bytes().to_vec();
            match kind % 3 {
                0 => (original.bytes[..from].to_vec(), from),
                1 => {
                    let kept = original.bytes.get(from + garbage.len()..).unwrap_or_default();
                    ([&original.bytes[..from], &garbage, kept].concat(), from)
                }
                _ => ([&original.bytes[..], &garbage].concat(), whole),
            }
        }
    };
    fs::write(&path, &bytes).unwrap();
    match SessionFile::open(&path) {
        Ok(file) => opened(&path, file, &original, &bytes, from),
        Err(error) => refused(&error, &original, &bytes, from),
    }
}

/// A file that was written, and what the session had in it.
struct Original {
    header: SessionHeader,
    events: Vec<Event>,
    bytes: Vec<u8>,
}

impl Original {
    /// How many lines, the header among them, lie whole below `end`.
    fn lines_below(&self, end: usize) -> usize {
        self.bytes[..end].iter().filter(|byte| **byte == b'\n').count()
    }

    /// Where a line ends.
    fn line_end(&self, line: usize) -> usize {
        let mut ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        ends.nth(line).map_or(self.bytes.len(), |(at, _)| at + 1)
    }
}

/// Lets a session happen. All that is acknowledged is in the file then, and nothing else.
fn write(path: &Path, input: &mut Input<'_>) -> Original {
    let header = SessionHeader::new(SessionId::new("s-1"), Some("/srv".into()));
    let file = SessionFile::create(path, header.clone()).expect("there is no file yet");
    let session = Session::persisted(file);
    let (mut turn, mut step) = (0, 0);
    let mut acknowledged = 0;
    for _ in 0..input.byte() % 64 {
        match input.byte() % 14 {
            12 => {
                flush(&session);
                acknowledged = session.len();
            }
            13 => session.wind_up(TurnEnd::Disposed),
            choice => {
                let data = event(choice, &mut turn, &mut step, input);
                // One that may not stand here is refused, and nothing has happened.
                let before = session.len();
                let appended = session.append(data);
                assert_eq!(session.len(), before + u64::from(appended.is_ok()));
            }
        }
    }
    if acknowledged == 0 {
        flush(&session);
        acknowledged = session.len();
    }
    let mut events = session.events();
    events.truncate(usize::try_from(acknowledged).unwrap());
    drop(session);
    let original = Original {
        header,
        events,
        bytes: fs::read(path).unwrap(),
    };
    assert_eq!(
        original.lines_below(original.bytes.len()),
        original.events.len() + 1
    );
    original
}

fn event(choice: u8, turn: &mut u64, step: &mut u64, input: &mut Input<'_>) -> EventData {
    let call_id = |input: &mut Input<'_>| CallId::new(format!("c{}", input.byte() % 4));
    match choice {
        0 | 1 => {
            (*turn, *step) = (*turn + 1, 0);
            let trigger = TurnTrigger::Message;
            EventData::TurnStart { turn: *turn, trigger }
        }
        2 => EventData::TurnEnd {
            turn: *turn,
            reason: match input.byte() % 3 {
                0 => TurnEnd::Completed,
                1 => TurnEnd::Aborted { reason: input.text() },
                _ => TurnEnd::Error {
                    step: *step,
                    message: input.text(),
                    code: None,
                },
            },
        },
        3 | 4 => {
            *step += 1;
            EventData::StepStart {
                turn: *turn,
                step: *step,
            }
        }
        5 => EventData::StepEnd {
            turn: *turn,
            step: *step,
        },
        6 => EventData::RequestHeader {
            reason: HeaderReason::Initial,
            header: RequestHeader {
                provider: "p".into(),
                model: "m".into(),
                system: input.text(),
                tools: Vec::new(),
                sampling: Sampling {
                    temperature: Some(f64::from(input.byte()) / 7.0),
                    max_tokens: None,
                },
            },
        },
        7 => EventData::UserMessage(Message::user(input.text())),
        8 | 9 => answer(input, call_id),
        10 => EventData::ToolCall {
            call_id: call_id(input),
            name: "bash".into(),
            arguments: input.text(),
        },
        _ => EventData::ToolResult {
            call_id: call_id(input),
            content: vec![ContentBlock::text(input.text())],
            is_error: input.byte() % 2 == 1,
            error: None,
            value: serde_json::from_slice(input.bytes()).ok(),
        },
    }
}

fn answer(input: &mut Input<'_>, call_id: impl Fn(&mut Input<'_>) -> CallId) -> EventData {
    let mut content = vec![AssistantBlock::Text { text: input.text() }];
    for _ in 0..input.byte() % 4 {
        let (name, arguments) = ("bash".to_owned(), input.text());
        content.push(AssistantBlock::ToolCall(ToolCall {
            id: call_id(input),
            name,
            arguments,
        }));
    }
    EventData::AssistantMessage {
        content,
        finish: Some(FinishReason::Stop),
        usage: Some(Usage {
            output_tokens: u64::from(input.byte()),
            ..Usage::default()
        }),
        interrupted: input.byte() % 5 == 4,
    }
}

/// A file that is read has all that stands before the harm; what it leaves out is no turn, and it says how much that is.
fn opened(path: &Path, file: SessionFile, original: &Original, bytes: &[u8], from: usize) {
    if from >= original.line_end(0) {
        assert_eq!(file.header(), &original.header);
    }
    let repair = file.repair();
    let session = Session::persisted(file);
    let events = session.events();
    let unharmed = original
        .lines_below(from.min(original.bytes.len()))
        .saturating_sub(1);
    assert!(events.len() >= unharmed);
    assert_eq!(
        events[..unharmed],
        original.events[..unharmed],
        "what stands before the harm"
    );
    let (torn, closers) = repair.map_or((0, 0), |repair| (repair.torn_bytes, repair.closers));
    let torn = bytes.len() - usize::try_from(torn).unwrap();
    let ends_a_turn = |line: &[u8]| {
        let line: Result<Value, _> = serde_json::from_slice(line);
        line.is_ok_and(|line| line["type"] == "turn/end")
    };
    assert!(
        !bytes[torn..].split(|byte| *byte == b'\n').any(ends_a_turn),
        "a turn is left out"
    );
    // Each line that is not left out is an event, and the others were added.
    let lines = bytes[..torn]
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    assert_eq!(events.len(), lines.count() - 1 + closers);
    for (seq, event) in (0..).zip(&events) {
        assert_eq!(event.seq, seq);
    }
    let closed = session.append(EventData::TurnStart {
        turn: session.next_turn(),
        trigger: TurnTrigger::Notice,
    });
    assert_eq!(closed, Ok(events.len() as u64), "no turn is open");
    flush(&session);
    let events = session.events();
    drop(session);
    let file = SessionFile::open(path).expect("what was flushed can be read");
    assert_eq!(
        file.repair().map(|repair| (repair.torn_bytes, repair.closers)),
        Some((0, 1))
    );
    let again = Session::persisted(file).events();
    assert_eq!(again[..events.len()], events[..], "what was acknowledged");
}

/// A file is refused for a line that was harmed, or for what was harmed in its header.
fn refused(error: &StoreError, original: &Original, bytes: &[u8], from: usize) {
    assert!(!error.to_string().is_empty());
    let unharmed = original.lines_below(from.min(original.bytes.len()));
    match error {
        StoreError::NoHeader { .. } | StoreError::Version { .. } => assert_eq!(unharmed, 0, "{error}"),
        StoreError::Corrupt { line, .. } => {
            assert!(*line > unharmed, "{error}: {unharmed} lines are whole");
            assert_ne!(
                bytes,
                &original.bytes[..from.min(original.bytes.len())],
                "a cut is no damage: {error}"
            );
        }
        other => panic!("{other}"),
    }
}

fn flush(session: &Session) {
    PLACE.with(|place| {
        let (_, runtime) = place.get().expect("made for the path");
        runtime
            .block_on(session.flush(Durability::Written))
            .expect("the file is ours");
    });
}

fn path() -> PathBuf {
    PLACE.with(|place| {
        let made = || {
            (
                tempfile::tempdir().unwrap(),
                Builder::new_current_thread().build().unwrap(),
            )
        };
        place.get_or_init(made).0.path().join("s-1.jsonl")
    })
}
