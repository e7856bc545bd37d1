//! The log: its numbers, its time, its wire form.

use std::path::{Path, PathBuf};

use dsh_llm::{CallId, ContentBlock};
use dsh_session::{Event, EventData, Message, MessageSource, Session, SessionId};
use expect_test::expect;

fn said(text: &str) -> EventData {
    EventData::UserMessage(Message {
        content: vec![ContentBlock::text(text)],
        source: MessageSource::User,
    })
}

fn one_of_each() -> Vec<EventData> {
    let notice = MessageSource::Plugin {
        plugin: "dsh-tool-tasks".into(),
        form: "notice".into(),
        summary: "bash-1 finished".into(),
    };
    vec![
        said("hello"),
        EventData::UserMessage(Message {
            content: vec![ContentBlock::text("done")],
            source: notice,
        }),
        EventData::ToolCall {
            call_id: CallId::new("c1"),
            name: "bash".into(),
            arguments: r#"{"command":"ls"}"#.into(),
        },
        EventData::ToolResult {
            call_id: CallId::new("c1"),
            content: vec![ContentBlock::text("Error: no")],
            is_error: true,
        },
    ]
}

#[test]
fn events_are_numbered_from_zero_without_gaps() {
    let session = Session::new(SessionId::new("s"), None);
    let numbers: Vec<_> = (0..3).map(|_| session.append(said("x"))).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(
        session.events().iter().map(|event| event.seq).collect::<Vec<_>>(),
        [0, 1, 2]
    );
}

#[test]
fn appends_from_many_threads_are_each_in_their_numbered_place() {
    let session = Session::new(SessionId::new("s"), None);
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let session = &session;
            threads.spawn(move || {
                for _ in 0..100 {
                    let text = thread.to_string();
                    let seq = session.append(said(&text));
                    assert_eq!(session.events()[seq as usize].data, said(&text));
                }
            });
        }
    });
    let events = session.events();
    assert_eq!(events.len(), 400);
    assert!(events.iter().zip(0..).all(|(event, seq)| event.seq == seq));
    assert!(events.is_sorted_by_key(|event| event.time));
}

#[test]
fn clones_share_the_log() {
    let session = Session::new(SessionId::new("s"), Some(PathBuf::from("/srv")));
    session.clone().append(said("x"));
    assert_eq!(session.events().len(), 1);
    assert_eq!(session.id().as_str(), "s");
    assert_eq!(session.cwd(), Some(Path::new("/srv")));
}

#[test]
fn the_wire_form_is_type_seq_time_data() {
    let events: Vec<_> = one_of_each()
        .into_iter()
        .zip(0..)
        .map(|(data, seq)| Event {
            seq,
            time: 1_700_000_000_000 + seq,
            data,
        })
        .collect();
    let lines: Vec<_> = events
        .iter()
        .map(|event| serde_json::to_string(event).unwrap())
        .collect();
    expect![[r#"
        {"type":"user/message","seq":0,"time":1700000000000,"data":{"content":[{"type":"text","text":"hello"}],"source":{"kind":"user"}}}
        {"type":"user/message","seq":1,"time":1700000000001,"data":{"content":[{"type":"text","text":"done"}],"source":{"kind":"plugin","plugin":"dsh-tool-tasks","form":"notice","summary":"bash-1 finished"}}}
        {"type":"tool/call","seq":2,"time":1700000000002,"data":{"callId":"c1","name":"bash","arguments":"{\"command\":\"ls\"}"}}
        {"type":"tool/result","seq":3,"time":1700000000003,"data":{"callId":"c1","content":[{"type":"text","text":"Error: no"}],"isError":true}}"#]]
    .assert_eq(&lines.join("\n"));

    for (event, line) in events.iter().zip(&lines) {
        assert_eq!(serde_json::from_str::<Event>(line).unwrap(), *event);
    }
}

#[test]
fn a_wire_form_that_is_no_event_is_refused() {
    for json in [
        r#"{"type":"turn/unheard-of","seq":0,"time":1,"data":{}}"#,
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
}
