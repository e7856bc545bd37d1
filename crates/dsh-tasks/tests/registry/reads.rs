//! Reading, and how an end is recorded.

use std::sync::atomic::{AtomicBool, Ordering};

use dsh_tasks::{Outcome, Serves, TaskId};
use dsh_testkit::LogCapture;
use tokio_util::sync::CancellationToken;

use crate::common::{Producer, Rig, limit, settled};

const MAX: usize = 64_000;

fn read(rig: &Rig, id: &TaskId) -> (String, String, bool) {
    let read = rig.tasks.read(id, None, MAX).unwrap();
    let line = read.snapshot.status_line();
    let reported = read.snapshot.reported;
    read.claim.deliver();
    (read.text, line, reported)
}

#[tokio::test]
async fn t14_a_stream_is_read_once_and_its_rest_after_the_end() {
    let rig = Rig::new();
    let producer = Producer::stream();
    let id = rig.start(&producer, None);
    producer.write("first");
    assert_eq!(
        read(&rig, &id),
        ("first".into(), "[status: running]".into(), false)
    );
    assert_eq!(
        read(&rig, &id),
        (String::new(), "[status: running]".into(), false)
    );
    producer.write("rest");
    producer.settle(Outcome::completed().detail("exit code: 0"));
    settled().await;
    assert_eq!(
        read(&rig, &id),
        ("rest".into(), "[status: completed, exit code: 0]".into(), true)
    );
    assert!(rig.status(&id, None).finished_at.is_some());
}

#[tokio::test]
async fn t15_a_producers_output_limit_is_in_every_snapshot() {
    let rig = Rig::new();
    let id = rig
        .tasks
        .start(Producer::new().spec("bash", "l").output_limit_bytes(64))
        .unwrap();
    assert_eq!(rig.status(&id, None).output_limit_bytes, Some(64));
    assert_eq!(
        rig.tasks
            .read(&id, None, MAX)
            .unwrap()
            .snapshot
            .output_limit_bytes,
        Some(64)
    );
}

#[tokio::test]
async fn t16_a_final_output_is_there_after_the_end_for_every_read() {
    let rig = Rig::new();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    assert_eq!(read(&rig, &id).0, "");
    producer.settle(Outcome::completed().output("the answer"));
    settled().await;
    assert_eq!(read(&rig, &id).0, "the answer");
    assert_eq!(read(&rig, &id).0, "the answer");
}

#[tokio::test]
async fn t17_a_failure_without_output_keeps_its_detail() {
    let rig = Rig::new();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    producer.settle(Outcome::failed().detail("max-tokens"));
    settled().await;
    assert_eq!(
        read(&rig, &id),
        (String::new(), "[status: failed, max-tokens]".into(), true)
    );
}

#[tokio::test]
async fn t18_an_unknown_id_is_named_with_the_ids_that_exist() {
    let rig = Rig::new();
    let id = TaskId::from("bash-99");
    let unknown = || rig.tasks.read(&id, None, MAX).unwrap_err().to_string();
    assert_eq!(unknown(), "unknown task bash-99");
    rig.start(&Producer::new(), None);
    rig.start(&Producer::new(), None);
    assert_eq!(unknown(), "unknown task bash-99 (your tasks: bash-1, bash-2)");
}

#[tokio::test]
async fn t18_of_very_many_ids_that_exist_the_newest_are_named() {
    let rig = Rig::with(limit(1000));
    let id = TaskId::from("bash-99");
    let unknown = || rig.tasks.read(&id, None, MAX).unwrap_err().to_string();
    let known = |from: usize, to: usize| -> String {
        let ids: Vec<_> = (from..=to).map(|n| format!("bash-{n}")).collect();
        ids.join(", ")
    };
    for _ in 1..=20 {
        rig.start(&Producer::new(), None);
    }
    let all = format!("unknown task bash-99 (your tasks: {})", known(1, 20));
    assert_eq!(unknown(), all);
    for _ in 21..=25 {
        rig.start(&Producer::new(), None);
    }
    let newest = format!("unknown task bash-99 (your tasks: {}, and 5 more)", known(6, 25));
    assert_eq!(unknown(), newest);
}

#[tokio::test]
async fn an_unknown_id_of_any_length_is_repeated_in_one_short_line() {
    let rig = Rig::new();
    let id = TaskId::from(format!("bash\n{}", "9".repeat(1_000_000)));
    let unknown = rig.tasks.read(&id, None, MAX).unwrap_err().to_string();
    assert_eq!(unknown, format!("unknown task bash {}…", "9".repeat(194)));
}

#[tokio::test]
async fn t19_a_listener_that_panics_is_logged_and_stops_no_other() {
    let rig = Rig::new();
    let log = LogCapture::start();
    rig.tasks
        .on_done(&rig.root, Serves::Everyone, |_| panic!("first listener exploded"))
        .unwrap();
    let ends = rig.ends();
    let producer = Producer::new();
    rig.start(&producer, None);
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
    assert!(log.contains("tasks: onTaskDone listener threw for bash-1: first listener exploded"));
}

#[tokio::test]
async fn t20_a_listener_that_fails_later_is_logged_and_not_waited_for() {
    let rig = Rig::new();
    let log = LogCapture::start();
    let gate = dsh_testkit::Gate::new();
    let opened = gate.clone();
    let slow = move |_| -> dsh_tasks::BoxFuture<Result<(), dsh_tasks::BoxError>> {
        let opened = opened.clone();
        Box::pin(async move {
            opened.opened().await;
            Err("delivery failed late".into())
        })
    };
    rig.tasks.on_done(&rig.root, Serves::Everyone, slow).unwrap();
    let ends = rig.ends();
    let producer = Producer::new();
    rig.start(&producer, None);
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(
        ends.all().len(),
        1,
        "the second listener did not wait for the first"
    );
    gate.open();
    settled().await;
    assert!(log.contains("tasks: onTaskDone listener rejected for bash-1: delivery failed late"));
}

#[tokio::test]
async fn t21_a_done_that_panics_ends_the_task_as_failed() {
    let rig = Rig::new();
    let log = LogCapture::start();
    let work = || {
        Ok(dsh_tasks::Work::new(
            async { panic!("transport exploded") },
            |_| Ok(()),
        ))
    };
    let id = rig
        .tasks
        .start(dsh_tasks::StartSpec::new("bash", "l", work))
        .unwrap();
    settled().await;
    assert_eq!(
        rig.status(&id, None).status_line(),
        "[status: failed, Error: transport exploded]"
    );
    let warning = "tasks: task bash-1 'done' rejected (producer contract violation): transport exploded";
    assert!(log.contains(warning));
}

#[tokio::test]
async fn t22_listeners_of_a_closed_scope_and_detached_ones_are_not_called() {
    let rig = Rig::new();
    let plugin = rig.root.child("plugin").unwrap();
    let unexpected = |_| -> dsh_tasks::BoxFuture<Result<(), dsh_tasks::BoxError>> { panic!("was called") };
    rig.tasks.on_done(&plugin, Serves::Everyone, unexpected).unwrap();
    let detached = rig
        .tasks
        .on_done(&rig.root, Serves::Everyone, unexpected)
        .unwrap();
    let log = LogCapture::start();
    plugin.close().await.unwrap();
    detached.detach().await;
    detached.detach().await;
    let producer = Producer::new();
    rig.start(&producer, None);
    producer.settle(Outcome::completed());
    settled().await;
    assert!(!log.contains("was called"));
    assert!(rig.tasks.on_done(&plugin, Serves::Everyone, unexpected).is_err());
}

#[tokio::test]
async fn a_read_that_panics_consumes_and_reports_nothing() {
    struct Broken;
    impl dsh_output::OutputSource for Broken {
        fn len(&self) -> u64 {
            7
        }
        fn read_range(&self, _: u64, _: u64, _: usize) -> dsh_output::OutputRead {
            panic!("disk gone")
        }
        fn tail(&self, _: usize, _: usize) -> String {
            panic!("disk gone")
        }
    }
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let spec = {
        let producer = producer.clone();
        let run = move || Ok(producer.work().output(std::sync::Arc::new(Broken)));
        dsh_tasks::StartSpec::new("bash", "l", run)
    };
    let id = rig.tasks.start(spec).unwrap();
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(
        rig.tasks.read(&id, None, MAX).unwrap_err().to_string(),
        "disk gone"
    );
    let snapshot = rig.status(&id, None);
    assert!(!snapshot.reported);
    assert_eq!((snapshot.bytes, ends.all()[0].tail.as_str()), (7, ""));
}

#[tokio::test]
async fn only_the_source_runs_while_others_wait_for_their_turn_to_read() {
    let rig = Rig::new();
    let (tasks, first) = (rig.tasks.clone(), AtomicBool::new(true));
    let detail = move || {
        // It would wait for the read that asks for it.
        if first.swap(false, Ordering::Relaxed) {
            tasks.read(&"bash-1".into(), None, MAX).ok()?;
        }
        Some("asked".to_owned())
    };
    let producer = Producer::stream();
    let work = producer.work().live_detail(detail);
    let spec = dsh_tasks::StartSpec::new("bash", "l", move || Ok(work));
    let id = rig.tasks.start(spec).unwrap();
    assert_eq!(read(&rig, &id).1, "[status: running, asked]");
}

#[tokio::test]
async fn what_was_not_delivered_is_read_again_before_anything_newer() {
    let rig = Rig::new();
    let producer = Producer::stream();
    let id = rig.start(&producer, None);
    producer.write("one ");
    let lost = rig.tasks.read(&id, None, MAX).unwrap();
    producer.write("two ");
    let told = rig.tasks.read(&id, None, MAX).unwrap();
    assert_eq!((lost.text.as_str(), told.text.as_str()), ("one ", "two "));
    told.claim.deliver();
    drop(lost.claim);
    producer.write("three");
    let rest = rig.tasks.read(&id, None, MAX).unwrap();
    assert_eq!(rest.text, "one three");
    drop(rest);
    assert_eq!(read(&rig, &id).0, "one three");
    assert_eq!(read(&rig, &id).0, "");
}

#[tokio::test]
async fn what_comes_back_does_not_hide_that_there_is_more() {
    let rig = Rig::new();
    let producer = Producer::stream();
    let id = rig.start(&producer, None);
    producer.write("12345678");
    let lost = rig.tasks.read(&id, None, 8).unwrap();
    producer.write("told");
    rig.tasks.read(&id, None, 8).unwrap().claim.deliver();
    drop(lost);
    producer.write("last");
    producer.settle(Outcome::completed());
    settled().await;
    let first = rig.tasks.read(&id, None, 8).unwrap();
    assert_eq!(first.text, "12345678\n[4 more bytes; read again to get them]\n");
    assert!(first.snapshot.status.is_terminal());
    first.claim.deliver();
    let rest = rig.tasks.read(&id, None, 8).unwrap();
    assert_eq!(rest.text, "last");
}

#[tokio::test]
async fn what_comes_back_leaves_the_rest_of_the_room_to_what_is_behind_it() {
    let rig = Rig::new();
    let producer = Producer::stream();
    let id = rig.start(&producer, None);
    let mut reads = ["aaa\n", "bbb\n", "ccc\n"].map(|line| {
        producer.write(line);
        Some(rig.tasks.read(&id, None, MAX).unwrap())
    });
    for told in [0, 2] {
        reads[told].take().unwrap().claim.deliver();
    }
    drop(reads);
    producer.write("ddd\n");
    let both = rig.tasks.read(&id, None, 8).unwrap();
    assert_eq!(both.text, "bbb\nddd\n");
    drop(both);
    let first = rig.tasks.read(&id, None, 4).unwrap();
    assert_eq!(first.text, "bbb\n[4 more bytes; read again to get them]\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_readers_share_one_cursor_and_lose_nothing() {
    let rig = Rig::new();
    let producer = Producer::stream();
    let id = rig.start(&producer, None);
    let reader = |drop_every: usize| {
        let (tasks, id) = (rig.tasks.clone(), id.clone());
        tokio::task::spawn_blocking(move || {
            let mut lines = Vec::new();
            for round in 0.. {
                let read = tasks.read(&id, None, MAX).unwrap();
                if round % drop_every == 0 {
                    continue;
                }
                let is_over = read.snapshot.status.is_terminal() && read.text.is_empty();
                lines.extend(read.text.lines().map(str::to_owned));
                read.claim.deliver();
                if is_over {
                    return lines;
                }
            }
            lines
        })
    };
    let readers = [reader(2), reader(3)];
    for line in 0..2_000 {
        producer.write(&format!("{line}\n"));
        if line % 50 == 0 {
            tokio::task::yield_now().await;
        }
    }
    producer.settle(Outcome::completed());
    let mut lines = Vec::new();
    for reader in readers {
        lines.extend(reader.await.unwrap());
    }
    // One of them may hold a piece while the other sees an empty end: what it dropped then is still there.
    lines.extend(read(&rig, &id).0.lines().map(str::to_owned));
    let mut lines: Vec<u32> = lines.iter().map(|line| line.parse().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..2_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn observing_consumes_nothing_and_tells_nobody() {
    let rig = Rig::new();
    let ends = rig.ends();
    let stream = Producer::stream();
    let id = rig.start(&stream, None);
    stream.write("hello");
    let seen = rig.tasks.observe(&id, None, 2, MAX).unwrap();
    assert_eq!((seen.text.as_str(), seen.next, seen.omitted), ("llo", 5, 0));
    stream.settle(Outcome::completed());
    let last = Producer::new();
    let final_id = rig.start(&last, None);
    last.settle(Outcome::completed().output("äöü"));
    settled().await;
    let seen = rig.tasks.observe(&final_id, None, 1, 3).unwrap();
    assert_eq!((seen.text.as_str(), seen.next), ("ö", 4));
    rig.tasks.observe(&id, None, 0, MAX).unwrap();
    assert_eq!(
        ends.reported(),
        [("bash-1".to_owned(), false), ("bash-2".to_owned(), false)]
    );
    assert_eq!(read(&rig, &id).0, "hello");
}

#[tokio::test]
async fn the_first_end_wins_and_is_announced_once() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new().on_cancel(crate::common::OnCancel::Settle);
    let id = rig.start(&producer, None);
    producer.settle(Outcome::completed().detail("exit code: 0"));
    settled().await;
    producer.settle(Outcome::failed());
    settled().await;
    let waited = rig
        .tasks
        .wait(&id, None, 1.0, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(waited.snapshot.status_line(), "[status: completed, exit code: 0]");
    waited.claim.deliver();
    settled().await;
    assert_eq!(ends.all().len(), 1);
}

#[tokio::test]
async fn the_end_comes_with_the_last_lines_of_output() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::stream();
    rig.start(&producer, None);
    producer.write("1\n2\n3\n4\n5\n6\n");
    producer.settle(Outcome::completed());
    let last = Producer::new();
    rig.start(&last, None);
    last.settle(Outcome::completed().output("the\nanswer\n"));
    settled().await;
    let tails: Vec<String> = ends.all().into_iter().map(|done| done.tail).collect();
    assert_eq!(tails, ["2\n3\n4\n5\n6", "the\nanswer"]);
}
