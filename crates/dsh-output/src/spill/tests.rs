use std::fs::OpenOptions;

use super::*;

/// A writer on `file`, in a directory with room for `room` bytes.
fn writer_in(file: File, max_bytes: u64, room: u64) -> (SpillWriter, Arc<SpillDir>, tempfile::TempDir) {
    let base = tempfile::tempdir().unwrap();
    let dir = SpillDir::create_in(base.path(), room).unwrap();
    let (_, path) = create_in(dir.path()).unwrap();
    let name = Arc::new(SpillFile {
        path,
        dir: Arc::clone(&dir),
        reserved: AtomicU64::new(0),
    });
    let writer = SpillWriter {
        state: State::Open { file, name },
        max_bytes,
        written: 0,
    };
    (writer, dir, base)
}

/// What is left of the room for 1,000 bytes when another takes all.
fn free(dir: &SpillDir) -> u64 {
    let free = dir.room().reserve(u64::MAX);
    dir.room().release(free);
    free
}

#[test]
fn a_full_device_stops_spilling_at_once() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (mut writer, dir, _base) = writer_in(full, 100, 1_000);
    writer.write(b"abc");
    assert_eq!(writer.written(), 0);
    assert!(matches!(writer.state, State::Stopped));
    writer.write(b"more");
    assert_eq!(writer.written(), 0);
    assert_eq!(free(&dir), 1_000, "nothing stays reserved");
}

#[test]
fn the_cap_cuts_within_a_write() {
    let file = tempfile::tempfile().unwrap();
    let other = file.try_clone().unwrap();
    let (mut writer, dir, _base) = writer_in(file, 5, 1_000);
    writer.write(b"abc");
    writer.write(b"defg");
    writer.write(b"h");
    assert_eq!(writer.written(), 5);
    assert_eq!(other.metadata().unwrap().len(), 5);
    assert_eq!(read_exact(&other, &(1..5)).unwrap(), b"bcde");
    assert_eq!(read_exact(&other, &(1..6)), None);
    assert_eq!(free(&dir), 995);
    drop(writer);
    assert_eq!(free(&dir), 1_000);
}

#[test]
fn the_room_of_all_cuts_within_a_write_and_ends_the_file() {
    let file = tempfile::tempfile().unwrap();
    let other = file.try_clone().unwrap();
    let (mut writer, dir, _base) = writer_in(file, 100, 5);
    let State::Open { name, .. } = &writer.state else {
        unreachable!()
    };
    let _readable = Arc::clone(name);
    writer.write(b"abc");
    assert_eq!(free(&dir), 2);
    writer.write(b"defg");
    assert_eq!((writer.written(), free(&dir)), (5, 0));
    // Room that comes back does not help this file: it would have a hole.
    dir.room().release(10);
    writer.write(b"h");
    assert_eq!(read_exact(&other, &(0..5)).unwrap(), b"abcde");
    assert_eq!(other.metadata().unwrap().len(), 5);
}

#[test]
fn a_file_that_cannot_be_removed_keeps_its_share() {
    let (mut writer, dir, _base) = writer_in(tempfile::tempfile().unwrap(), 100, 1_000);
    writer.write(b"abc");
    let State::Open { name, .. } = &writer.state else {
        unreachable!()
    };
    // A directory cannot be removed as a file.
    std::fs::remove_file(name.path()).unwrap();
    std::fs::create_dir(name.path()).unwrap();
    drop(writer);
    assert_eq!(free(&dir), 997);
}

#[test]
fn a_writer_that_is_stopped_keeps_no_more_room_than_it_filled() {
    let base = tempfile::tempdir().unwrap();
    let dir = SpillDir::create_in(base.path(), 1_000).unwrap();
    let mut writer = SpillWriter::new(Some(SpillConfig {
        dir: Arc::clone(&dir),
        max_bytes: 100,
    }));
    let _readable = writer.start(50).unwrap();
    writer.write(b"abc");
    assert_eq!(free(&dir), 950);
    writer.stop();
    assert_eq!(free(&dir), 997);
}

#[test]
fn without_any_room_no_file_is_made() {
    let base = tempfile::tempdir().unwrap();
    let dir = SpillDir::create_in(base.path(), 0).unwrap();
    let mut writer = SpillWriter::new(Some(SpillConfig {
        dir: Arc::clone(&dir),
        max_bytes: 100,
    }));
    assert!(writer.start(10).is_none());
    assert!(!writer.is_waiting());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "only the lock");
}

#[test]
fn c27_c30_c33_a_failing_close_withholds_the_whole_file() {
    let (mut writer, dir, _base) = writer_in(tempfile::tempfile().unwrap(), 100, 1_000);
    writer.write(b"abc");
    assert_eq!(writer.written(), 3);
    assert!(
        writer
            .finish_with(|_| Err(io::ErrorKind::StorageFull.into()))
            .is_err()
    );
    assert_eq!(writer.written(), 0);
    writer.write(b"later");
    assert_eq!(writer.written(), 0);
    assert!(writer.finish().is_ok());
    assert_eq!(free(&dir), 1_000);
}
