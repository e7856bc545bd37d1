//! Floods: exact counts, bounded memory, no reader in the way.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails its test")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{in_memory, sections, spilling};
use dsh_output::{OutputSource, Rendering, Stream};

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

#[test]
fn five_megabytes_keep_head_and_tail_with_an_exact_count() {
    let log = in_memory(64_000);
    log.append(Stream::Stdout, b"FIRST\n");
    let before = resident();
    for _ in 0..640 {
        log.append(Stream::Stdout, &[b'x'; 8_192]);
    }
    log.append(Stream::Stdout, b"\nLAST\n");
    log.close();
    assert!(resident().saturating_sub(before) < 4_000_000);
    let len = 6 + 640 * 8_192 + 6;
    let read = sections(&log).read_from(0, usize::MAX);
    assert_eq!((read.next, read.omitted), (len, len - 64_000));
    assert!(read.text.starts_with("FIRST\n") && read.text.ends_with("\nLAST\n"));
    assert!(read.text.contains(&format!(
        "\n[{} bytes omitted here; no longer available]\n",
        len - 64_000
    )));
}

#[test]
fn two_megabytes_over_a_one_megabyte_cap_keep_the_first_line_and_the_exact_tail() {
    let spilling = spilling(64_000, 1_000_000);
    let log = &spilling.log;
    log.append(Stream::Stdout, b"FIRST\n");
    for _ in 0..250 {
        log.append(Stream::Stdout, &[b'x'; 8_000]);
    }
    log.append(Stream::Stdout, b"\nLAST\n");
    log.close();
    let len = 2_000_012;
    let missing = len - 1_000_000 - 32_000;
    let read = sections(log).read_from(0, usize::MAX);
    assert_eq!((read.next, read.omitted), (len, missing));
    assert!(read.text.starts_with("FIRST\n") && read.text.ends_with("\nLAST\n"));
    assert_eq!(
        std::fs::metadata(log.spill_path().unwrap()).unwrap().len(),
        1_000_000
    );
}

#[test]
fn alternating_one_byte_writes_lose_nothing_and_need_bounded_memory() {
    let spilling = spilling(10_000, 10_000_000);
    let log = &spilling.log;
    let before = resident();
    const PAIRS: u64 = 200_000;
    for _ in 0..PAIRS {
        log.append(Stream::Stdout, b"o");
        log.append(Stream::Stderr, b"e");
    }
    log.close();
    assert!(resident().saturating_sub(before) < 3_000_000);
    assert_eq!(log.len(), 2 * PAIRS);
    let all = log.reader(Rendering::Interleaved).read_from(0, usize::MAX);
    assert_eq!((all.text, all.omitted), ("oe".repeat(200_000), 0));
    let head = sections(log).read_range(0, 1_000, usize::MAX);
    assert_eq!(
        head.text,
        format!("{}\n[stderr]\n{}", "o".repeat(500), "e".repeat(500))
    );
    let tail = sections(log).read_from(2 * PAIRS - 1_000, usize::MAX);
    assert_eq!(
        tail.text,
        format!("{}\n[stderr]\n{}", "o".repeat(500), "e".repeat(500))
    );
}

#[test]
fn readers_beside_two_writers_see_every_byte_once() {
    let spilling = spilling(1_000, 10_000_000);
    let log = &spilling.log;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let write = |stream, byte: u8| {
            let log = log.clone();
            move || {
                for size in 0..3_000 {
                    log.append(stream, &vec![byte; size % 97 + 1]);
                }
            }
        };
        let writers = [
            scope.spawn(write(Stream::Stdout, b'o')),
            scope.spawn(write(Stream::Stderr, b'e')),
        ];
        for _ in 0..2 {
            scope.spawn(|| {
                let reader = log.reader(Rendering::Interleaved);
                let (mut cursor, mut text) = (0, String::new());
                loop {
                    let last = done.load(Ordering::Acquire);
                    let read = reader.read_from(cursor, usize::MAX);
                    assert_eq!(read.omitted, 0);
                    text += &read.text;
                    cursor = read.next;
                    if last {
                        break;
                    }
                }
                assert_eq!(text.len() as u64, log.len());
                let file = std::fs::read_to_string(log.spill_path().unwrap()).unwrap();
                assert_eq!(text, file);
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Release);
    });
}

#[tokio::test]
async fn a_change_between_the_check_and_the_wait_is_not_missed() {
    let log = in_memory(100);
    let mut idle = tokio_test_poll(log.changed());
    assert!(!idle.poll());
    let changed = log.changed();
    log.append(Stream::Stdout, b"x");
    changed.await;
    assert!(idle.poll());

    let closed = log.changed();
    log.close();
    closed.await;
    log.changed().await;

    let dropped = in_memory(100);
    let orphan = dropped.changed();
    drop(dropped);
    orphan.await;
}

struct Polled<F>(std::pin::Pin<Box<F>>);

fn tokio_test_poll<F: Future>(future: F) -> Polled<F> {
    Polled(Box::pin(future))
}

impl<F: Future> Polled<F> {
    fn poll(&mut self) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        self.0.as_mut().poll(&mut context).is_ready()
    }
}
