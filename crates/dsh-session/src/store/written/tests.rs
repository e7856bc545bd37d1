use std::fs;

use super::super::{Disk, SessionFile};
use super::*;
use crate::SessionId;

fn lines(text: &str) -> Lines {
    Lines {
        bytes: text.as_bytes().to_vec(),
        events: text.lines().count() as u64,
    }
}

#[test]
fn what_the_system_may_have_forgotten_is_written_again_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    let header = SessionHeader::new(SessionId::new("s"), None);
    let mut file = WrittenFile::create(&path, &header, &lines("a\n"), None).unwrap();
    file.sync(&path).unwrap();
    file.write(&path, &lines("b\nc\n")).unwrap();
    assert_eq!(file.start().events, 3);
    let whole = fs::read_to_string(&path).unwrap();

    // As after a sync that failed: the pages are clean, and nobody knows what is on the disk.
    file.sync_failed = true;
    assert_eq!(file.start().events, 1, "events from here on are wanted again");
    let damaged = whole.replace("b\nc\n", "??\n?");
    fs::write(&path, damaged).unwrap();
    file.write(&path, &lines("b\nc\nd\n")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{whole}d\n"));
    file.sync(&path).unwrap();
    assert_eq!(file.start().events, 4);
}

/// As a process that is being started has until its exec.
#[test]
fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    let header = SessionHeader::new(SessionId::new("s"), None);
    drop(WrittenFile::create(&path, &header, &lines(""), None).unwrap());
    let file = SessionFile::open(&path).unwrap();
    let Disk::Written(written) = &file.disk else {
        unreachable!("it has a header");
    };
    let _copy = written.file().try_clone().unwrap();
    assert!(matches!(SessionFile::open(&path), Err(StoreError::InUse { .. })));
    drop(file);
    SessionFile::open(&path).unwrap();
}
