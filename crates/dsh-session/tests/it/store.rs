//! The file: how it appears, who may have it, what it may hold.

use std::fs;

use dsh_session::{Durability, Session, SessionFile, SessionHeader, SessionId, StoreError};
use dsh_testkit::eventually;

use crate::support::*;

fn created(room: &Room) -> Session {
    Session::persisted(SessionFile::create(room.path(), session_header()).unwrap())
}

fn flush(session: &Session) {
    block_on(session.flush(Durability::Synced)).unwrap();
}

fn open_error(bytes: impl AsRef<[u8]>) -> String {
    let room = Room::new();
    write(&room.path(), bytes);
    let error = SessionFile::open(room.path()).unwrap_err().to_string();
    error.replace(room.path().to_str().unwrap(), "FILE")
}

#[test]
fn nothing_is_there_before_the_first_flush_and_then_all_of_it() {
    let room = Room::new();
    let session = created(&room);
    for data in whole_log() {
        session.append(data).unwrap();
    }
    assert_eq!(room.names(), [""; 0]);
    flush(&session);
    assert_eq!(room.names(), ["s.jsonl"]);
    assert_eq!(fs::read(room.path()).unwrap(), file_of(&session.events()));
}

#[test]
fn later_flushes_add_what_is_new() {
    let room = Room::new();
    let session = created(&room);
    for (data, number) in whole_log().into_iter().zip(0..) {
        session.append(data).unwrap();
        let durability = [Durability::Written, Durability::Synced][number % 2];
        block_on(session.flush(durability)).unwrap();
        assert_eq!(fs::read(room.path()).unwrap(), file_of(&session.events()));
    }
}

#[test]
fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::new();
    flush(&created(&room));
    let mode = fs::metadata(room.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_was_flushed_is_what_is_opened() {
    let room = Room::new();
    let session = created(&room);
    for data in whole_log() {
        session.append(data).unwrap();
    }
    flush(&session);
    let events = session.events();
    drop(session);

    let file = SessionFile::open_session(room.path(), &SessionId::new("s")).unwrap();
    assert_eq!(file.repair(), None);
    assert_eq!(file.header(), &session_header());
    let session = Session::persisted(file);
    assert_eq!(session.events(), events);
    assert_eq!(session.header(), &session_header());
    assert_eq!(session.next_turn(), 3);
    session.append(turn_start(3)).unwrap();
    flush(&session);
    assert_eq!(fs::read(room.path()).unwrap(), file_of(&session.events()));
}

#[test]
fn a_session_without_a_file_has_nothing_to_flush() {
    let session = Session::new(SessionId::new("s"), None);
    let mut flush = tokio_test::task::spawn(session.flush(Durability::Synced));
    assert!(
        tokio_test::assert_ready!(flush.poll()).is_ok(),
        "without a runtime"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushes_at_the_same_time_write_each_event_once() {
    let room = Room::new();
    let session = created(&room);
    session.append(turn_start(1)).unwrap();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let session = session.clone();
            let runtime = tokio::runtime::Handle::current();
            std::thread::spawn(move || {
                for number in 0..50 {
                    session.append(said(&format!("{writer} {number}"))).unwrap();
                    runtime.block_on(session.flush(Durability::Written)).unwrap();
                }
            })
        })
        .collect();
    eventually("all to be written", || {
        writers.iter().all(|writer| writer.is_finished())
    })
    .await;
    let events = session.events();
    assert_eq!(events.len(), 201);
    assert_eq!(fs::read(room.path()).unwrap(), file_of(&events));
}

#[test]
fn a_file_that_holds_something_is_not_overwritten() {
    let room = Room::new();
    write(&room.path(), "my notes");
    let error = SessionFile::create(room.path(), session_header()).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert_eq!(fs::read(room.path()).unwrap(), b"my notes");
}

#[test]
fn a_file_that_appears_before_the_first_flush_is_not_overwritten() {
    let room = Room::new();
    let (ours, theirs) = (created(&room), created(&room));
    ours.append(turn_start(1)).unwrap();
    flush(&ours);
    let error = block_on(theirs.flush(Durability::Written)).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert_eq!(fs::read(room.path()).unwrap(), file_of(&ours.events()));
    assert_eq!(room.names(), ["s.jsonl"], "nothing else is left behind");
}

#[test]
fn an_empty_file_is_taken() {
    let room = Room::new();
    write(&room.path(), "");
    let session = created(&room);
    let error = SessionFile::create(room.path(), session_header()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    flush(&session);
    assert_eq!(fs::read(room.path()).unwrap(), file_of(&[]));
    let error = SessionFile::open(room.path()).unwrap_err();
    assert!(
        matches!(error, StoreError::InUse { .. }),
        "the lock is kept: {error}"
    );
}

#[test]
fn an_empty_file_that_was_filled_is_not_overwritten() {
    let room = Room::new();
    write(&room.path(), "");
    let session = created(&room);
    write(&room.path(), "my notes");
    let error = block_on(session.flush(Durability::Written)).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert_eq!(fs::read(room.path()).unwrap(), b"my notes");
}

#[test]
fn one_file_has_one_writer() {
    let room = Room::new();
    let session = created(&room);
    flush(&session);
    for error in [
        SessionFile::open(room.path()).unwrap_err(),
        SessionFile::create(room.path(), session_header()).unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::InUse { .. }), "{error}");
        assert!(error.to_string().contains("s.jsonl"), "{error}");
    }
    drop(session);
    SessionFile::open(room.path()).unwrap();
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let room = Room::new();
    for path in [std::path::PathBuf::from("/dev/null"), room.path()] {
        let error = match path.to_str() {
            Some("/dev/null") => SessionFile::create(path, session_header()),
            _ => SessionFile::open(path),
        }
        .unwrap_err();
        let text = error.to_string();
        assert!(
            text == "session file /dev/null is no regular file" || text.contains("No such file"),
            "{text}"
        );
    }
}

#[test]
fn a_missing_directory_shows_at_once() {
    let room = Room::new();
    let error = SessionFile::create(room.path().join("x"), session_header()).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot create session file"),
        "{error}"
    );
}

#[test]
fn a_working_directory_is_absolute() {
    let room = Room::new();
    let header = SessionHeader::new(SessionId::new("s"), Some("src".into()));
    let error = SessionFile::create(room.path(), header).unwrap_err();
    assert_eq!(
        error.to_string(),
        "working directory src cannot be recorded: it must be absolute and valid UTF-8"
    );
}

#[test]
fn a_file_that_was_taken_away_or_shortened_is_noticed() {
    let room = Room::new();
    let session = created(&room);
    session.append(turn_start(1)).unwrap();
    flush(&session);
    session.append(turn_end(1)).unwrap();
    let bytes = fs::read(room.path()).unwrap();
    write(&room.path(), &bytes[..bytes.len() - 5]);
    let error = block_on(session.flush(Durability::Written))
        .unwrap_err()
        .to_string();
    assert!(error.contains("was shortened by somebody else"), "{error}");
    fs::remove_file(room.path()).unwrap();
    let error = block_on(session.flush(Durability::Written))
        .unwrap_err()
        .to_string();
    assert!(error.contains("was removed by somebody else"), "{error}");
}

#[test]
fn core58_what_is_no_log_is_refused_by_name() {
    let header = r#"{"type":"session","version":0,"id":"s","createdAt":1}"#;
    let cases = [
        (
            "",
            "FILE is no session file: its first line is no session header (it is not complete)",
        ),
        (
            header,
            "FILE is no session file: its first line is no session header (it is not complete)",
        ),
        (
            "{\"type\":\"session\",\"version\":1,\"who\":\"knows\"}\n",
            "session file FILE has version 1: only version 0 is known",
        ),
        (
            "{\"type\":\"session\",\"version\":\"0\",\"id\":\"s\",\"createdAt\":1}\n",
            "session file FILE has version \"0\": only version 0 is known",
        ),
        (
            "{\"type\":\"turn/start\",\"version\":0}\n",
            "FILE is no session file: its first line is no session header (its type is \"turn/start\")",
        ),
        (
            "{\"type\":\"session\",\"version\":0,\"id\":\"s\",\"createdAt\":1,\"cwd\":\"src\"}\n",
            "FILE is no session file: its first line is no session header (cwd \"src\" is not absolute)",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(open_error(bytes), expected);
    }
    assert!(open_error("hello\n").starts_with("FILE is no session file"));
    assert!(open_error("{\"type\":\"session\",\"version\":0}\n").contains("missing field `id`"));
}

#[test]
fn the_file_of_another_session_is_refused() {
    let room = Room::new();
    flush(&created(&room));
    let error = SessionFile::open_session(room.path(), &SessionId::new("t")).unwrap_err();
    let expected = format!("session file {} is of session s, not of t", room.path().display());
    assert_eq!(error.to_string(), expected);
    SessionFile::open(room.path()).unwrap();
}

#[test]
fn core58_damage_up_to_the_last_end_of_a_turn_is_refused_with_its_line() {
    let lines: Vec<_> = file_of(&numbered(whole_log()))
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    for damaged in 1..lines.len() {
        let mut missing = lines.clone();
        missing.remove(damaged);
        let mut garbled = lines.clone();
        garbled[damaged] = b"\xff{\n".to_vec();
        let mut twice = lines.clone();
        twice.insert(damaged, lines[damaged].clone());
        if damaged + 1 < lines.len() {
            let at = format!("session file FILE is damaged at line {}: ", damaged + 1);
            for damage in [&missing, &garbled] {
                let error = open_error(damage.concat());
                assert!(error.starts_with(&at), "{error}");
            }
        }
        let error = open_error(twice.concat());
        let at = format!("session file FILE is damaged at line {}: event", damaged + 2);
        assert!(error.starts_with(&at), "{error}");
    }
}

#[test]
fn core58_events_that_may_not_stand_there_are_damage() {
    let mut events = numbered(whole_log());
    events.swap(6, 7);
    events[6].seq = 6;
    events[7].seq = 7;
    events[7].time = events[6].time;
    events.remove(5);
    for (event, seq) in events.iter_mut().zip(0..) {
        event.seq = seq;
    }
    events[4].data = tool_call("c1");
    assert_eq!(
        open_error(file_of(&events)),
        "session file FILE is damaged at line 6: tool/call for call \"c1\", which is not open in this step"
    );

    let mut events = numbered(whole_log());
    events[8].time = 5;
    assert_eq!(
        open_error(file_of(&events)),
        "session file FILE is damaged at line 10: event 8 is older than the one before"
    );
}

#[test]
fn a_file_whose_last_turn_leaves_no_number_for_the_next_is_damaged() {
    let file = |turn| file_of(&numbered(vec![turn_start(turn), turn_end(turn)]));
    assert_eq!(
        open_error(file(u64::MAX)),
        "session file FILE is damaged at line 2: turn/start for turn 18446744073709551615, after which no number is \
         left: go on in a new session"
    );
    let room = Room::new();
    write(&room.path(), file(u64::MAX - 1));
    let session = Session::persisted(SessionFile::open(room.path()).unwrap());
    assert_eq!(session.next_turn(), u64::MAX);
}
