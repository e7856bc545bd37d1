//! A harness that is killed in the middle of writing.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    thread,
};

use dsh_session::{Durability, EventData, Session, SessionFile};

use crate::support::*;

/// Tells the child where to write.
const CHILD: &str = "DSH_TEST_KILLED_WRITER";

#[test]
fn what_was_acknowledged_survives_sigkill() {
    if let Some(path) = std::env::var_os(CHILD) {
        return write_until_killed(path.into());
    }
    for enough in [1, 7, 40, 200] {
        let room = Room::new();
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "kill::what_was_acknowledged_survives_sigkill",
                "--nocapture",
            ])
            .env(CHILD, room.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut acknowledged = 0;
        for line in BufReader::new(writer.stdout.take().unwrap()).lines() {
            if let Some(count) = line.unwrap().strip_prefix("acknowledged ") {
                acknowledged = count.parse().unwrap();
                if acknowledged >= enough {
                    break;
                }
            }
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        assert!(acknowledged >= enough);

        let session = Session::persisted(SessionFile::open(room.path()).unwrap());
        let said: Vec<_> = session
            .events()
            .into_iter()
            .filter(|event| matches!(event.data, EventData::UserMessage(_)))
            .collect();
        assert!(
            said.len() as u64 >= acknowledged,
            "{} of {acknowledged}",
            said.len()
        );
        for (event, number) in said.iter().zip(0..) {
            assert_eq!(event.data, saying(number));
        }
        assert_eq!(session.events().last().unwrap().data, interrupted(1));
    }
}

/// What a writer leaves that is killed, is what somebody sees who looks while it writes.
#[test]
fn a_new_file_is_seen_under_no_name_but_its_own() {
    let room = tempfile::tempdir().unwrap();
    let write = || {
        for number in 0..50 {
            let path = room.path().join(format!("{number}.jsonl"));
            let session = Session::persisted(SessionFile::create(&path, session_header()).unwrap());
            session.append(turn_start(1)).unwrap();
            session.append(saying(number)).unwrap();
            block_on(session.flush(Durability::Written)).unwrap();
            assert!(path.exists());
        }
    };
    let mut others = Vec::new();
    thread::scope(|scope| {
        let writer = scope.spawn(write);
        while !writer.is_finished() {
            let names = fs::read_dir(room.path()).unwrap().flatten();
            let names = names.map(|entry| entry.file_name().into_string().unwrap());
            others.extend(names.filter(|name| name.starts_with('.')));
        }
        writer.join().unwrap();
    });
    assert_eq!(others, [""; 0]);
}

fn saying(number: u64) -> EventData {
    said(&format!(
        "{number} {}",
        "x".repeat(usize::try_from(number * 37 % 5000).unwrap())
    ))
}

/// Ends by itself, too: when nobody reads what it prints, or after a while.
fn write_until_killed(path: std::path::PathBuf) {
    let session = Session::persisted(SessionFile::create(path, session_header()).unwrap());
    session.append(turn_start(1)).unwrap();
    for number in 0..20_000 {
        session.append(saying(number)).unwrap();
        block_on(session.flush(Durability::Written)).unwrap();
        println!("acknowledged {}", number + 1);
    }
}
