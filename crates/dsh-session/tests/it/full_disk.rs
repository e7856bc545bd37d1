//! No room for the file, in a process of its own whose files may not grow.

use std::{fs, path::PathBuf, process::Command};

use dsh_session::{Durability, Session, SessionFile, StoreError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::*;

/// Tells the child where to write.
const CHILD: &str = "DSH_TEST_FULL_DISK";

/// The limit is a soft one, and its signal is ignored, so that writing fails as it does on a full disk: after a part.
const LIMITED: &str = r#"trap "" XFSZ; ulimit -S -f 8; exec "$0" --exact "$1" --nocapture"#;

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    if let Some(path) = std::env::var_os(CHILD) {
        return write_too_much(path.into());
    }
    run_limited("full_disk::a_full_disk_is_reported_and_loses_nothing");
}

#[test]
fn a_file_that_never_fitted_is_not_there_at_all() {
    if let Some(path) = std::env::var_os(CHILD) {
        return create_too_much(path.into());
    }
    run_limited("full_disk::a_file_that_never_fitted_is_not_there_at_all");
}

fn run_limited(test: &str) {
    let room = Room::new();
    let output = Command::new("sh")
        .args(["-c", LIMITED])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(CHILD, room.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(told.contains("1 passed"), "{told}");
    assert_eq!(room.names(), ["s.jsonl"]);
}

fn flush(session: &Session) -> Result<(), StoreError> {
    block_on(session.flush(Durability::Synced))
}

fn make_room() {
    let limit = Rlimit {
        current: getrlimit(Resource::Fsize).maximum,
        ..getrlimit(Resource::Fsize)
    };
    setrlimit(Resource::Fsize, limit).unwrap();
}

fn expect_no_room(error: StoreError, path: &std::path::Path, doing: &str) {
    let expected = format!(
        "cannot {doing} session file {}: File too large (os error 27)",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
}

fn write_too_much(path: PathBuf) {
    let session = Session::persisted(SessionFile::create(&path, session_header()).unwrap());
    session.append(turn_start(1)).unwrap();
    flush(&session).unwrap();
    let error = loop {
        session.append(said(&"x".repeat(999))).unwrap();
        match flush(&session) {
            Ok(()) => assert!(session.len() < 100, "there is a limit"),
            Err(error) => break error,
        }
    };
    expect_no_room(error, &path, "write");
    let acknowledged = session.len() as usize - 1;
    let whole = file_of(&session.events()[..acknowledged]);
    let whole = String::from_utf8(whole).unwrap();
    let in_file = fs::read_to_string(&path).unwrap();
    assert!(
        whole.ends_with(in_file.split_once('\n').unwrap().1),
        "no half line is left"
    );

    session.append(turn_end(1)).unwrap();
    expect_no_room(flush(&session).unwrap_err(), &path, "write");
    make_room();
    flush(&session).unwrap();
    let events = session.events();
    drop(session);
    let file = SessionFile::open(&path).unwrap();
    assert_eq!(file.repair(), None);
    assert_eq!(Session::persisted(file).events(), events);
}

fn create_too_much(path: PathBuf) {
    let session = Session::persisted(SessionFile::create(&path, session_header()).unwrap());
    session.append(turn_start(1)).unwrap();
    session.append(said(&"x".repeat(99_999))).unwrap();
    expect_no_room(flush(&session).unwrap_err(), &path, "create");
    let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(left, 0, "neither the file nor a part of it");
    make_room();
    flush(&session).unwrap();
    assert_eq!(fs::read(&path).unwrap(), file_of(&session.events()));
}
