//! What the memory of a log costs.

use crate::OutputConfig;
use crate::log::{OutputLog, Stream};

#[test]
fn a_closed_log_holds_no_more_memory_than_its_bytes_need() {
    let log = OutputLog::new(OutputConfig {
        memory_bytes: 64_000,
        ..OutputConfig::default()
    });
    for _ in 0..400 {
        log.append(Stream::Stdout, &[b'x'; 101]);
    }
    let room = || {
        let core = log.core();
        core.window.head.capacity() + core.window.tail.capacity()
    };
    assert!(room() > 40_400 + 1000, "room for more while it grows: {}", room());
    log.close();
    assert!((40_400..40_400 + 100).contains(&room()), "{}", room());
    assert_eq!(log.len(), 40_400);
}
