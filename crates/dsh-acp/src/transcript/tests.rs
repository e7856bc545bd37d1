use dsh_agent::{AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::Scope;
use dsh_session::{SessionId, TurnTrigger};
use dsh_tools::ToolRegistry;

use super::*;
use crate::card::Terminals;

/// A transcript with one step open, and what it said.
struct Told {
    transcript: Transcript,
    said: Vec<String>,
    seq: u64,
    _agent: AgentHandle,
}

impl Told {
    fn new() -> Self {
        let spec = AgentSpec {
            id: SessionId::new("s-1"),
            cwd: None,
            within: Scope::root("test"),
        };
        let handle = AgentRegistry::new().create(spec).unwrap();
        let presenter = Presenter {
            tools: ToolRegistry::new(),
            agent: handle.agent().clone(),
            terminals: Terminals::AsText,
        };
        let mut told = Self {
            transcript: Transcript::new(presenter),
            said: Vec::new(),
            seq: 0,
            _agent: handle,
        };
        let trigger = TurnTrigger::Message;
        told.log(EventData::TurnStart { turn: 1, trigger });
        told.log(EventData::StepStart { turn: 1, step: 1 });
        told
    }

    fn log(&mut self, data: EventData) {
        let event = Event {
            seq: self.seq,
            time: 0,
            data,
        };
        self.seq += 1;
        let updates = self.transcript.event(&event, Telling::Live);
        self.said.extend(updates.iter().map(text_of));
    }

    fn piece(&mut self, step: u64, text: &str) {
        let text = text.to_owned();
        let update = self.transcript.piece(&Live::Text { turn: 1, step, text });
        self.said.extend(update.iter().map(text_of));
    }

    fn thought(&mut self, text: &str) {
        let (turn, step, text) = (1, 1, text.to_owned());
        let update = self.transcript.piece(&Live::Reasoning { turn, step, text });
        self.said.extend(update.iter().map(text_of));
    }

    fn answer(&mut self, content: Vec<AssistantBlock>) {
        self.log(EventData::AssistantMessage {
            content,
            finish: None,
            usage: None,
            interrupted: false,
        });
    }
}

fn text_of(update: &SessionUpdate) -> String {
    let (mark, chunk) = match update {
        SessionUpdate::AgentMessageChunk(chunk) => ("", chunk),
        SessionUpdate::AgentThoughtChunk(chunk) => ("?", chunk),
        other => panic!("{other:?}"),
    };
    match &chunk.content {
        Block::Text(text) => format!("{mark}{}", text.text),
        other => panic!("{other:?}"),
    }
}

fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text {
        text: text.to_owned(),
    }
}

fn reasoning(text: &str) -> AssistantBlock {
    AssistantBlock::Reasoning {
        text: text.to_owned(),
    }
}

#[test]
fn what_was_not_streamed_comes_with_the_answer() {
    let mut told = Told::new();
    told.piece(1, "Hello ");
    told.piece(1, "wor");
    told.answer(vec![text("Hello world.")]);
    assert_eq!(told.said, ["Hello ", "wor", "ld."]);
}

#[test]
fn pieces_that_come_behind_their_answer_are_in_it() {
    let mut told = Told::new();
    told.piece(1, "Hel");
    told.answer(vec![text("Hello.")]);
    told.piece(1, "lo.");
    assert_eq!(told.said, ["Hel", "lo."]);
}

#[test]
fn after_a_gap_the_answer_tells_the_rest() {
    let mut told = Told::new();
    told.piece(1, "one ");
    told.transcript.missed();
    told.piece(1, "three ");
    told.answer(vec![text("one two three four")]);
    assert_eq!(told.said, ["one ", "two three four"]);
    // The next step streams again.
    told.log(EventData::StepEnd { turn: 1, step: 1 });
    told.log(EventData::StepStart { turn: 1, step: 2 });
    told.piece(2, "on");
    assert_eq!(told.said.last().unwrap(), "on");
}

#[test]
fn thoughts_and_text_are_counted_apart_over_all_blocks() {
    let mut told = Told::new();
    told.thought("a");
    told.piece(1, "1");
    told.thought("b");
    told.answer(vec![reasoning("a"), text("1"), reasoning("bc"), text("2")]);
    assert_eq!(told.said, ["?a", "1", "?b", "?c", "2"]);
}

#[test]
fn an_answer_that_is_another_one_comes_whole() {
    let mut told = Told::new();
    told.piece(1, "Hallo");
    told.answer(vec![text("Hello.")]);
    assert_eq!(told.said, ["Hallo", "Hello."]);
}

#[test]
fn pieces_of_a_step_that_is_over_or_not_begun_are_not_shown() {
    let mut told = Told::new();
    told.piece(2, "early");
    told.log(EventData::StepEnd { turn: 1, step: 1 });
    told.piece(1, "late");
    assert!(told.said.is_empty(), "{:?}", told.said);
}

#[test]
fn text_is_cut_between_characters_only() {
    let mut told = Told::new();
    told.piece(1, "gr\u{fc}");
    told.answer(vec![text("gr\u{fc}\u{df}e")]);
    assert_eq!(told.said, ["gr\u{fc}", "\u{df}e"]);
}
