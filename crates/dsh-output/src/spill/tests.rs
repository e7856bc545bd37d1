use std::fs::OpenOptions;

use super::*;

fn writer_on(file: File, max_bytes: u64) -> SpillWriter {
    SpillWriter {
        state: State::Open(file),
        max_bytes,
        written: 0,
    }
}

#[test]
fn a_full_device_stops_spilling_at_once() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut writer = writer_on(full, 100);
    writer.write(b"abc");
    assert_eq!(writer.written(), 0);
    assert!(matches!(writer.state, State::Stopped));
    writer.write(b"more");
    assert_eq!(writer.written(), 0);
}

#[test]
fn the_cap_cuts_within_a_write() {
    let file = tempfile::tempfile().unwrap();
    let other = file.try_clone().unwrap();
    let mut writer = writer_on(file, 5);
    writer.write(b"abc");
    writer.write(b"defg");
    writer.write(b"h");
    assert_eq!(writer.written(), 5);
    assert_eq!(other.metadata().unwrap().len(), 5);
    assert_eq!(read_exact(&other, &(1..5)).unwrap(), b"bcde");
    assert_eq!(read_exact(&other, &(1..6)), None);
}

#[test]
fn c27_c30_c33_a_failing_close_withholds_the_whole_file() {
    let mut writer = writer_on(tempfile::tempfile().unwrap(), 100);
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
}
