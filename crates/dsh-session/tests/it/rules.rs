//! What may not stand in a log, and why.

use dsh_llm::CallId;
use dsh_session::{AppendError, EventData, HeaderReason, Session, SessionId, TurnEnd};
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::*;

/// Appends the first ones, and returns why the last one is refused.
fn refused(before: &[EventData], last: EventData) -> AppendError {
    let session = Session::new(SessionId::new("s"), None);
    for data in before {
        session.append(data.clone()).unwrap();
    }
    let error = session.append(last).unwrap_err();
    assert_eq!(session.len(), before.len() as u64, "nothing is appended: {error}");
    error
}

fn header_now() -> EventData {
    header(HeaderReason::Initial, "m")
}

#[test]
fn each_rule_has_its_refusal() {
    let turn = [turn_start(1)];
    let step = [turn_start(1), step_start(1, 1)];
    let asked = [
        turn_start(1),
        step_start(1, 1),
        answer(vec![call("c1"), call("c2")]),
    ];
    let cases = [
        (&[][..], said("x")),
        (&[], turn_end(1)),
        (&[], step_start(1, 1)),
        (&[], turn_start(0)),
        (&[], turn_start(u64::MAX)),
        (&turn, turn_start(2)),
        (&turn, turn_end(2)),
        (&turn, step_start(2, 1)),
        (&turn, step_start(1, 0)),
        (&turn, step_end(1, 1)),
        (&turn, header_now()),
        (&turn, answer(Vec::new())),
        (&turn, tool_call("c1")),
        (&turn, tool_result("c1", "x")),
        (&step, turn_end(1)),
        (&step, step_start(1, 2)),
        (&step, step_end(1, 2)),
        (&step, said("x")),
        (&step, tool_call("c1")),
        (&step, answer(vec![call("c1"), call("c1")])),
        (&asked, header_now()),
        (&asked, answer(Vec::new())),
        (&asked, said("x")),
        (&asked, step_end(1, 1)),
        (&asked, turn_end(1)),
        (&asked, tool_result("c3", "x")),
    ];
    let texts: Vec<_> = cases
        .into_iter()
        .map(|(before, last)| refused(before, last).to_string())
        .collect();
    expect![[r#"
        user/message outside a turn: append turn/start first
        turn/end outside a turn: append turn/start first
        step/start outside a turn: append turn/start first
        turn/start for turn 0 after turn 0: numbers only increase
        turn/start for turn 18446744073709551615, after which no number is left: go on in a new session
        turn/start while turn 1 is open: append its turn/end first
        turn/end for turn 2 while turn 1 is open
        step/start for turn 2 while turn 1 is open
        step/start for step 0 after step 0: numbers only increase
        step/end outside a step: append step/start first
        request/header outside a step: append step/start first
        assistant/message outside a step: append step/start first
        tool/call outside a step: append step/start first
        tool/result outside a step: append step/start first
        turn/end while step 1 is open: append its step/end first
        step/start while step 1 is open: append its step/end first
        step/end for step 2 while step 1 is open
        user/message before the answer of step 1: append it before step/start or after the answer
        tool/call for call "c1", which is not open in this step
        assistant/message with two calls "c1": give each call an id of its own
        request/header in the middle of step 1: append it directly after step/start
        a second assistant/message in step 1: begin another step
        user/message while call "c1" is unanswered: append its tool/result first
        step/end while call "c1" is unanswered: append its tool/result first
        turn/end while step 1 is open: append its step/end first
        tool/result for call "c3", which is not open in this step"#]]
    .assert_eq(&texts.join("\n"));
}

#[test]
fn numbers_only_increase() {
    let ended = [turn_start(3), step_start(3, 2), step_end(3, 2), turn_end(3)];
    for number in 0..=3 {
        refused(&ended, turn_start(number));
    }
    for number in 0..=2 {
        refused(&ended[..3], step_start(3, number));
    }
}

#[test]
fn a_step_has_at_most_one_header_and_it_comes_first() {
    let error = refused(&[turn_start(1), step_start(1, 1), header_now()], header_now());
    assert_eq!(error, AppendError::LateHeader { step: 1 });
}

#[test]
fn a_call_runs_once_and_is_answered_once() {
    let mut log = vec![turn_start(1), step_start(1, 1), answer(vec![call("c1")])];
    log.push(tool_call("c1"));
    let call_id = CallId::new("c1");
    let kind = "tool/call";
    assert_eq!(
        refused(&log, tool_call("c1")),
        AppendError::NoSuchCall { kind, call_id }
    );
    log.push(tool_result("c1", "x"));
    refused(&log, tool_result("c1", "x"));
    refused(&log, tool_call("c1"));
}

#[test]
fn calls_of_an_interrupted_answer_are_not_run() {
    let log = [
        turn_start(1),
        step_start(1, 1),
        interrupted_answer(vec![call("c1"), call("c1")]),
    ];
    refused(&log, tool_call("c1"));
    refused(&log, tool_result("c1", "x"));
}

#[test]
fn winding_up_ends_whatever_is_open_and_speaks_of_no_crash() {
    let session = Session::new(SessionId::new("s"), None);
    session.wind_up(TurnEnd::Disposed);
    assert!(session.is_empty());
    let asked = answer(vec![call("c1"), call("c2")]);
    for data in [turn_start(1), step_start(1, 1), asked, tool_result("c1", "x")] {
        session.append(data).unwrap();
    }
    let mut feed = session.subscribe();
    session.wind_up(TurnEnd::Disposed);
    let ended: Vec<_> = session
        .events_from(4)
        .into_iter()
        .map(|event| event.data)
        .collect();
    let reason = TurnEnd::Disposed;
    let expected = [
        cut_off_result("c2"),
        step_end(1, 1),
        EventData::TurnEnd { turn: 1, reason },
    ];
    assert_eq!(ended, expected);
    assert_eq!(block_on(feed.next()).len(), 3);
    session.append(turn_start(2)).unwrap();
}

#[test]
fn ids_of_calls_are_per_step() {
    let session = Session::new(SessionId::new("s"), None);
    session.append(turn_start(1)).unwrap();
    for step in 1..=2 {
        session.append(step_start(1, step)).unwrap();
        session.append(answer(vec![call("c1")])).unwrap();
        session.append(tool_result("c1", "x")).unwrap();
        session.append(step_end(1, step)).unwrap();
    }
    refused(
        &[
            turn_start(1),
            step_start(1, 1),
            answer(vec![call("old")]),
            tool_result("old", "x"),
            step_end(1, 1),
            step_start(1, 2),
            answer(vec![call("new")]),
        ],
        tool_result("old", "late"),
    );
}

#[test]
fn what_json_cannot_hold_is_refused() {
    let step = [turn_start(1), step_start(1, 1)];
    let EventData::RequestHeader { reason, mut header } = header_now() else {
        panic!("not a header")
    };
    header.sampling.temperature = Some(f64::NAN);
    let nan = EventData::RequestHeader {
        reason,
        header: header.clone(),
    };
    let (kind, what) = ("request/header", "a temperature that is no number");
    assert_eq!(refused(&step, nan), AppendError::NotLossless { kind, what });

    header.sampling.temperature = None;
    header.tools[0].parameters = nested(101);
    refused(&step, EventData::RequestHeader { reason, header });

    let mut result = tool_result("c1", "x");
    set_value(&mut result, nested(101));
    refused(
        &[turn_start(1), step_start(1, 1), answer(vec![call("c1")])],
        result,
    );
}

#[test]
fn what_is_as_deep_as_it_may_be_is_read_back() {
    let EventData::RequestHeader { reason, mut header } = header_now() else {
        panic!("not a header")
    };
    header.tools[0].parameters = nested(100);
    let mut result = tool_result("c1", "x");
    set_value(&mut result, nested(100));
    let session = Session::new(SessionId::new("s"), None);
    for data in [
        turn_start(1),
        step_start(1, 1),
        EventData::RequestHeader { reason, header },
        answer(vec![call("c1")]),
        result,
    ] {
        session.append(data).unwrap();
    }
    for event in session.events() {
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<dsh_session::Event>(&line).unwrap(), event);
    }
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!(1), |inner, _| json!([inner]))
}

fn set_value(data: &mut EventData, new: Value) {
    if let EventData::ToolResult { value, .. } = data {
        *value = Some(new);
    }
}
