//! The log: its numbers, its wire form, those who follow it.

use std::path::{Path, PathBuf};

use dsh_session::{Event, EventData, Session, SessionHeader, SessionId};
use dsh_testkit::eventually;
use expect_test::expect;
use serde_json::Value;
use tokio_test::{assert_pending, assert_ready, task};

use crate::support::*;

fn session() -> Session {
    Session::new(SessionId::new("s"), None)
}

#[test]
fn events_are_numbered_from_zero_without_gaps() {
    let session = session();
    assert!(session.is_empty());
    for (data, seq) in whole_log().into_iter().zip(0..) {
        assert_eq!(session.append(data), Ok(seq));
        assert_eq!(session.len(), seq + 1);
    }
    let events = session.events();
    assert!(events.iter().zip(0..).all(|(event, seq)| event.seq == seq));
    let data: Vec<_> = events.iter().map(|event| event.data.clone()).collect();
    assert_eq!(data, whole_log());
    assert_eq!(session.events_from(5), events[5..]);
    assert_eq!(session.events_from(1000), []);
}

#[test]
fn appends_from_many_threads_are_each_in_their_numbered_place() {
    let session = session();
    session.append(turn_start(1)).unwrap();
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let session = &session;
            threads.spawn(move || {
                for _ in 0..100 {
                    let text = thread.to_string();
                    let seq = session.append(said(&text)).unwrap();
                    assert_eq!(session.events_from(seq)[0].data, said(&text));
                }
            });
        }
    });
    let events = session.events();
    assert_eq!(events.len(), 401);
    assert!(events.iter().zip(0..).all(|(event, seq)| event.seq == seq));
    assert!(events.is_sorted_by_key(|event| event.time));
}

#[test]
fn clones_share_the_log() {
    let session = Session::new(SessionId::new("s"), Some(PathBuf::from("/srv")));
    session.clone().append(turn_start(1)).unwrap();
    assert_eq!(session.events().len(), 1);
    assert_eq!(session.id().as_str(), "s");
    assert_eq!(session.cwd(), Some(Path::new("/srv")));
}

#[test]
fn the_next_turn_is_above_all_that_there_were() {
    let session = session();
    assert_eq!(session.next_turn(), 1);
    session.append(turn_start(4)).unwrap();
    assert_eq!(session.next_turn(), 5);
    session.append(turn_end(4)).unwrap();
    assert_eq!(session.next_turn(), 5);
}

#[test]
fn a_request_is_made_with_the_first_header() {
    let session = session();
    for data in &whole_log()[..3] {
        session.append(data.clone()).unwrap();
    }
    assert!(!session.has_request());
    session.append(whole_log()[3].clone()).unwrap();
    assert!(session.has_request());
}

#[test]
fn the_wire_form_is_type_seq_time_data() {
    let events = numbered(whole_log());
    let lines: Vec<_> = events
        .iter()
        .map(|event| serde_json::to_string(event).unwrap())
        .collect();
    expect![[r#"
        {"type":"turn/start","seq":0,"time":1700000000000,"data":{"turn":1,"trigger":"message"}}
        {"type":"user/message","seq":1,"time":1700000000001,"data":{"content":[{"type":"text","text":"look"}],"source":{"kind":"user"}}}
        {"type":"step/start","seq":2,"time":1700000000002,"data":{"turn":1,"step":1}}
        {"type":"request/header","seq":3,"time":1700000000003,"data":{"reason":"initial","header":{"provider":"scripted","model":"m-1","system":"be brief","tools":[{"name":"bash","description":"runs a command","parameters":{"type":"object"}}],"temperature":0.30000000000000004}}}
        {"type":"assistant/message","seq":4,"time":1700000000004,"data":{"content":[{"type":"reasoning","text":"hm"},{"type":"text","text":"ok"},{"type":"tool-call","id":"c1","name":"bash","arguments":"{\"command\":\"ls\"}"},{"type":"tool-call","id":"c2","name":"bash","arguments":"{\"command\":\"ls\"}"}],"finish":{"kind":"stop"},"usage":{"inputTokens":3,"cacheReadTokens":2,"outputTokens":1}}}
        {"type":"tool/call","seq":5,"time":1700000000005,"data":{"callId":"c1","name":"bash","arguments":"{\"command\":\"ls\"}"}}
        {"type":"tool/result","seq":6,"time":1700000000006,"data":{"callId":"c1","content":[{"type":"text","text":"a\nb"}],"isError":false,"value":{"exit":[1.5e+300,null,"é\n"]}}}
        {"type":"tool/result","seq":7,"time":1700000000007,"data":{"callId":"c2","content":[{"type":"text","text":"Error: no"}],"isError":true,"error":{"name":"ToolError","code":"NO"}}}
        {"type":"user/message","seq":8,"time":1700000000008,"data":{"content":[{"type":"text","text":"faster"}],"source":{"kind":"user"}}}
        {"type":"step/end","seq":9,"time":1700000000009,"data":{"turn":1,"step":1}}
        {"type":"step/start","seq":10,"time":1700000000010,"data":{"turn":1,"step":2}}
        {"type":"assistant/message","seq":11,"time":1700000000011,"data":{"content":[{"type":"text","text":"done"}],"finish":{"kind":"stop"},"usage":{"inputTokens":3,"cacheReadTokens":2,"outputTokens":1}}}
        {"type":"step/end","seq":12,"time":1700000000012,"data":{"turn":1,"step":2}}
        {"type":"turn/end","seq":13,"time":1700000000013,"data":{"turn":1,"reason":{"kind":"completed"}}}
        {"type":"turn/start","seq":14,"time":1700000000014,"data":{"turn":2,"trigger":"notice"}}
        {"type":"user/message","seq":15,"time":1700000000015,"data":{"content":[{"type":"text","text":"bash-1 finished"}],"source":{"kind":"plugin","plugin":"tool-tasks","form":"notice","summary":"build","subjects":["bash-1"]}}}
        {"type":"step/start","seq":16,"time":1700000000016,"data":{"turn":2,"step":1}}
        {"type":"request/header","seq":17,"time":1700000000017,"data":{"reason":"change","header":{"provider":"scripted","model":"m-2","system":"be brief","tools":[{"name":"bash","description":"runs a command","parameters":{"type":"object"}}],"temperature":0.30000000000000004}}}
        {"type":"assistant/message","seq":18,"time":1700000000018,"data":{"content":[{"type":"text","text":"I wi"},{"type":"tool-call","id":"c1","name":"bash","arguments":"{\"command\":\"ls\"}"}],"interrupted":true}}
        {"type":"step/end","seq":19,"time":1700000000019,"data":{"turn":2,"step":1}}
        {"type":"turn/end","seq":20,"time":1700000000020,"data":{"turn":2,"reason":{"kind":"aborted","reason":"cancelled"}}}"#]].assert_eq(&lines.join("\n"));
    for (event, line) in events.iter().zip(&lines) {
        assert_eq!(serde_json::from_str::<Event>(line).unwrap(), *event);
    }
}

#[test]
fn every_way_a_turn_ends_has_its_wire_form() {
    let forms = [
        r#"{"kind":"completed"}"#,
        r#"{"kind":"aborted","reason":"cancelled"}"#,
        r#"{"kind":"disposed"}"#,
        r#"{"kind":"max-tokens"}"#,
        r#"{"kind":"error","step":2,"message":"down"}"#,
        r#"{"kind":"error","step":2,"message":"down","code":"SERVER"}"#,
        r#"{"kind":"interrupted"}"#,
    ];
    for form in forms {
        let line = format!(r#"{{"type":"turn/end","seq":0,"time":1,"data":{{"turn":1,"reason":{form}}}}}"#);
        let event: Event = serde_json::from_str(&line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }
}

#[test]
fn a_result_of_null_is_not_no_result() {
    let mut data = tool_result("c", "x");
    let EventData::ToolResult { value, .. } = &mut data else {
        panic!("not a result")
    };
    *value = Some(Value::Null);
    let event = numbered(vec![data]).remove(0);
    let line = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
}

#[test]
fn numbers_are_read_back_bit_by_bit() {
    for number in [
        31.245270191439438,
        121.48791951161945,
        -0.0,
        f64::MIN_POSITIVE,
        f64::MAX,
    ] {
        let mut data = tool_result("c", "x");
        if let EventData::ToolResult { value, .. } = &mut data {
            *value = Some(number.into());
        }
        let line = serde_json::to_string(&numbered(vec![data]).remove(0)).unwrap();
        let EventData::ToolResult { value, .. } = serde_json::from_str::<Event>(&line).unwrap().data else {
            panic!("not a result")
        };
        let read = value.unwrap().as_f64().unwrap();
        assert_eq!(read.to_bits(), number.to_bits(), "{number} is read as {read}");
    }
}

#[test]
fn a_wire_form_that_is_no_event_is_refused() {
    for json in [
        r#"{"type":"turn/unheard-of","seq":0,"time":1,"data":{}}"#,
        r#"{"type":"turn/start","seq":0,"time":1,"data":{"turn":1,"trigger":"whim"}}"#,
        r#"{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"error","step":1}}}"#,
        r#"{"type":"user/message","time":1,"data":{"content":[],"source":{"kind":"user"}}}"#,
        r#"{"type":"user/message","seq":0,"time":1}"#,
        r#"{"type":"user/message","seq":-1,"time":1,"data":{"content":[],"source":{"kind":"user"}}}"#,
        r#"{"type":"tool/result","seq":0,"time":1,"data":{"callId":"c","content":[]}}"#,
    ] {
        assert!(serde_json::from_str::<Event>(json).is_err(), "{json}");
    }
}

#[test]
fn a_session_id_is_its_text() {
    let id = SessionId::new("s-1");
    assert_eq!(id.to_string(), "s-1");
    assert_eq!(serde_json::to_string(&id).unwrap(), r#""s-1""#);
    assert_eq!(serde_json::from_str::<SessionId>(r#""s-1""#).unwrap(), id);
    assert!(SessionHeader::new(id, None).created_at > 1_700_000_000_000);
}

#[test]
fn a_feed_has_what_came_since_it_was_made_and_then_waits() {
    let session = session();
    session.append(turn_start(1)).unwrap();
    let mut feed = session.subscribe();
    let mut all = session.subscribe_from(0);
    assert_eq!(assert_ready!(task::spawn(all.next()).poll()), session.events());

    let mut next = task::spawn(feed.next());
    assert_pending!(next.poll());
    session.append(said("a")).unwrap();
    assert!(next.is_woken());
    session.append(said("b")).unwrap();
    assert_eq!(assert_ready!(next.poll()), session.events_from(1));
    drop(next);
    assert_pending!(task::spawn(feed.next()).poll());
}

#[test]
fn a_feed_that_is_not_waited_for_loses_nothing() {
    let session = session();
    let mut feed = session.subscribe();
    drop(task::spawn(feed.next()));
    for data in whole_log() {
        session.append(data).unwrap();
        drop(task::spawn(feed.next()));
    }
    assert_eq!(assert_ready!(task::spawn(feed.next()).poll()), session.events());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core56_slow_readers_do_not_hold_up_who_appends() {
    let session = session();
    session.append(turn_start(1)).unwrap();
    let mut feeds: Vec<_> = (0..3).map(|_| session.subscribe_from(0)).collect();
    let appender = session.clone();
    let appending = std::thread::spawn(move || {
        for number in 0..500 {
            appender.append(said(&number.to_string())).unwrap();
        }
    });
    eventually("all to be appended, though nobody reads", || {
        appending.is_finished()
    })
    .await;
    for feed in &mut feeds {
        let mut seen = Vec::new();
        while seen.len() < 501 {
            seen.extend(feed.next().await);
        }
        assert_eq!(seen, session.events());
    }
}
