//! What an MCP client sends: any pieces of a stream give the same lines, and each line is taken for what it is.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use dsh_mcp::fuzzing::{lines, message};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::runtime::{Builder, Runtime};

use crate::input::{Input, pieces};

/// How many answers one line gets at most.
const MAX_ANSWERS: usize = 1000;
/// The most bytes of what an answer says.
const MAX_SAID: usize = 600;
/// The longest id that is found in a line that is too long.
const MAX_ID: usize = 1000;

/// A line, or the id of one that was too long.
type Line = Result<Vec<u8>, Option<Value>>;

/// The first byte is the limit of a line, in steps of four; the second one says how the rest, which is the stream, is cut.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let limit = usize::from(input.byte()) * 4;
    let seed = input.byte();
    let stream = input.rest();
    let whole = read(vec![stream], limit);
    assert_eq!(read(stream.chunks(1).collect(), limit), whole, "byte by byte");
    assert_eq!(read(pieces(stream, seed), limit), whole, "in pieces");
    let expected: Vec<&[u8]> = stream.split_inclusive(|byte| *byte == b'\n').collect();
    let expected = expected.iter().filter_map(|line| line.strip_suffix(b"\n"));
    assert_eq!(whole.len(), expected.clone().count());
    for (line, expected) in whole.iter().zip(expected) {
        match line {
            Ok(line) => assert!(line == expected && line.len() <= limit),
            Err(id) => refused_under(id.as_ref(), expected, limit),
        }
        taken_for_what_it_is(expected);
    }
}

fn read(pieces: Vec<&[u8]>, limit: usize) -> Vec<Line> {
    thread_local! {
        static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
    }
    let input = Pieces {
        pieces: pieces.into(),
        pending: false,
    };
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| Builder::new_current_thread().build().unwrap());
        runtime.block_on(lines(input, limit))
    })
}

/// The id of a line that is JSON is known, wherever it stands.
fn refused_under(id: Option<&Value>, line: &[u8], limit: usize) {
    assert!(line.len() > limit);
    let Ok(Value::Object(message)) = serde_json::from_slice(line) else {
        return;
    };
    let expected = message.get("id").filter(|id| is_id(id));
    let expected = expected.filter(|_| message.contains_key("method"));
    if expected.is_none_or(|id| id.to_string().len() < MAX_ID / 6) {
        assert!(is_same(id, expected), "{id:?}, not {expected:?}");
    }
}

fn taken_for_what_it_is(line: &[u8]) {
    let (kind, answers) = message(line);
    assert!(answers.len() <= MAX_ANSWERS);
    for answer in &answers {
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer["id"].is_null() || is_id(&answer["id"]));
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(!said.is_empty() && said.len() <= MAX_SAID, "{} bytes", said.len());
    }
    let code = answers.first().map(|answer| &answer["error"]["code"]);
    let expected = expected(line);
    match (kind, expected) {
        ("refused", -32700) => assert_eq!(code, Some(&(-32700).into())),
        ("refused" | "unreadable", _) => assert_eq!(code, Some(&(-32600).into())),
        (_, _) => assert!(code.is_none()),
    }
    match expected {
        0 => assert!(
            matches!(kind, "request" | "unreadable" | "cancel" | "nothing"),
            "{kind}"
        ),
        _ => assert_eq!(kind, "refused"),
    }
}

/// The code that a line is refused with by the rules of JSON-RPC; 0 if it is not.
fn expected(line: &[u8]) -> i64 {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return 0;
    }
    match serde_json::from_slice::<Value>(line) {
        Err(_) => -32700,
        Ok(Value::Object(message)) if is_message(&message) => 0,
        Ok(_) => -32600,
    }
}

fn is_message(message: &Map<String, Value>) -> bool {
    let id = message.get("id");
    let answers = message.contains_key("result") || message.contains_key("error");
    let good_id = id.is_none_or(is_id) || message.contains_key("error");
    let good_method = match message.get("method") {
        Some(method) => method.is_string(),
        None => answers,
    };
    // A notification is not answered, whatever it says.
    let unanswered = id.is_none_or(|id| !is_id(id)) || !message.contains_key("method");
    let good_params = message.get("params").is_none_or(Value::is_object);
    message.get("jsonrpc").is_some_and(|version| version == "2.0")
        && good_id
        && good_method
        && (good_params || unanswered)
}

/// A string, or an integer, which may be written in another way.
fn is_id(id: &Value) -> bool {
    let integral = |number: f64| number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0;
    id.is_string() || id.is_i64() || id.is_f64() && id.as_f64().is_some_and(integral)
}

fn is_same(one: Option<&Value>, other: Option<&Value>) -> bool {
    let number = |id: Option<&Value>| id.and_then(Value::as_f64);
    one == other || number(one).is_some() && number(one) == number(other)
}

/// A reader that gives one piece at a time, and lets whoever reads wait before each.
struct Pieces<'a> {
    pieces: VecDeque<&'a [u8]>,
    pending: bool,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.pending = !self.pending;
        if self.pending {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // An empty read would be the end.
        while self.pieces.front().is_some_and(|piece| piece.is_empty()) {
            self.pieces.pop_front();
        }
        if let Some(piece) = self.pieces.front_mut() {
            let (now, later) = piece.split_at(piece.len().min(buffer.remaining()));
            buffer.put_slice(now);
            *piece = later;
        }
        Poll::Ready(Ok(()))
    }
}
