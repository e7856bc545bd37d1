//! What the model sees of a log.

use dsh_llm::{CallId, ContentBlock, ModelMessage};
use dsh_session::{Derivation, Event, EventData, HeaderReason, Session, SessionId, derive, request_at};
use proptest::prelude::*;

use crate::support::*;

fn user(text: &str) -> ModelMessage {
    ModelMessage::User {
        content: vec![ContentBlock::text(text)],
    }
}

fn result(id: &str, text: &str, is_error: bool) -> ModelMessage {
    ModelMessage::ToolResult {
        call_id: CallId::new(id),
        content: vec![ContentBlock::text(text)],
        is_error,
    }
}

#[test]
fn messages_answers_and_results_are_seen_as_they_are() {
    let EventData::AssistantMessage { content: asked, .. } = &whole_log()[4] else {
        panic!("not an answer")
    };
    let expected = [
        user("look"),
        ModelMessage::Assistant {
            content: asked.clone(),
        },
        result("c1", "a\nb", false),
        result("c2", "Error: no", true),
        user("faster"),
        ModelMessage::Assistant {
            content: vec![text("done")],
        },
        user("bash-1 finished"),
        ModelMessage::Assistant {
            content: vec![text("I wi")],
        },
    ];
    assert_eq!(derive(&numbered(whole_log())), expected);
}

#[test]
fn an_empty_answer_is_not_seen() {
    let log = [
        turn_start(1),
        step_start(1, 1),
        answer(Vec::new()),
        step_end(1, 1),
        step_start(1, 2),
        interrupted_answer(vec![call("c1")]),
        step_end(1, 2),
    ];
    assert_eq!(derive(&numbered(log.to_vec())), []);
}

#[test]
fn core26_a_request_shows_what_was_logged_before_its_step() {
    let events = numbered(whole_log());
    let models: Vec<_> = (0..events.len() as u64)
        .filter_map(|seq| request_at(&events, seq).map(|request| (seq, request)))
        .map(|(seq, request)| {
            assert_eq!(request.messages, derive(&events[..seq as usize]));
            (seq, request.header.model)
        })
        .collect();
    let expected = [(2, "m-1"), (10, "m-1"), (16, "m-2")];
    assert_eq!(models, expected.map(|(seq, model)| (seq, model.to_owned())));
}

#[test]
fn without_a_header_there_is_no_request() {
    let events = numbered(vec![turn_start(1), said("x"), step_start(1, 1)]);
    assert_eq!(request_at(&events, 2), None);
    assert_eq!(request_at(&events, 3), None);
}

#[test]
fn a_header_of_a_later_step_does_not_count() {
    let events = numbered(vec![
        turn_start(1),
        step_start(1, 1),
        step_end(1, 1),
        step_start(1, 2),
        header(HeaderReason::Initial, "m"),
    ]);
    assert_eq!(request_at(&events, 1), None);
    assert!(request_at(&events, 3).is_some());
}

#[test]
fn a_choice_of_a_model_stands_anywhere_and_is_in_no_request() {
    let log = whole_log();
    let requests = |log: Vec<EventData>| -> Vec<_> {
        let events = numbered(log);
        let starts: Vec<_> = starts(&events).collect();
        let requests = starts.into_iter().map(|start| request_at(&events, start as u64));
        requests.collect()
    };
    let expected = requests(log.clone());
    assert!(expected.iter().all(Option::is_some));
    for place in 0..=log.len() {
        let mut log = log.clone();
        log.insert(place, model_choice("m-3"));
        let session = Session::new(SessionId::new("s"), None);
        for data in &log {
            session.append(data.clone()).unwrap();
        }
        assert_eq!(requests(log), expected, "with a choice at {place}");
    }
}

proptest! {
    #[test]
    fn core54_each_request_extends_the_one_before(log in any_log(120)) {
        let events = numbered(log);
        let mut before: Option<Vec<ModelMessage>> = None;
        for start in starts(&events) {
            let messages = derive(&events[..start]);
            if let Some(request) = request_at(&events, start as u64) {
                prop_assert_eq!(&request.messages, &messages);
            }
            if let Some(before) = before {
                prop_assert!(messages.starts_with(&before));
            }
            prop_assert!(calls_are_followed_by_their_results(&messages));
            before = Some(messages);
        }
    }

    #[test]
    fn keeping_up_gives_the_same_as_beginning_anew(log in any_log(120), stops in 1_usize..7) {
        let session = Session::new(SessionId::new("s"), None);
        let mut derivation = Derivation::default();
        for (data, number) in log.into_iter().zip(0_usize..) {
            session.append(data).unwrap();
            if number % stops == 0 {
                derivation.catch_up(&session);
                prop_assert_eq!(derivation.messages(), derive(&session.events()));
            }
        }
    }
}

fn starts(events: &[Event]) -> impl Iterator<Item = usize> {
    let is_start = |event: &Event| matches!(event.data, EventData::StepStart { .. });
    (0..events.len()).filter(move |&at| is_start(&events[at]))
}

/// What providers demand.
fn calls_are_followed_by_their_results(messages: &[ModelMessage]) -> bool {
    let mut waiting: Vec<CallId> = Vec::new();
    messages.iter().all(|message| match message {
        ModelMessage::ToolResult { call_id, .. } => {
            let place = waiting.iter().position(|id| id == call_id);
            place.map(|place| waiting.remove(place)).is_some()
        }
        ModelMessage::User { .. } => waiting.is_empty(),
        ModelMessage::Assistant { content } => {
            let was_empty = waiting.is_empty();
            let calls = content.iter().filter_map(|block| block.as_tool_call());
            waiting = calls.map(|call| call.id.clone()).collect();
            was_empty
        }
    }) && waiting.is_empty()
}
