//! Checks of output that the ordinary tests run for a moment and the soak runs for long.

use std::sync::Arc;
use std::time::Duration;

use dsh_agent_core::Config;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{Harness, Room, Server};

/// What the server may have held at any moment, under three floods.
const MOST_KIB: u64 = 40_000;

/// Three commands that write without end, for so long, with a model that looks now and then.
///
/// # Panics
///
/// When the server ever held too much memory, or a byte is not accounted for.
pub async fn three_floods(time: Duration) {
    let mut server = Server::start().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(server.background("yes").await);
    }
    for id in &ids {
        server.until_resource_says(id, "bytes omitted here").await;
    }
    let until = Instant::now() + time;
    while Instant::now() < until {
        for id in &ids {
            let reply = server.output(id).await;
            assert!(reply.ok().ends_with("\n[status: running]"), "{reply:?}");
        }
        // sleep: the time is what this is about, so long the floods run.
        tokio::time::sleep((time / 20).min(Duration::from_secs(1))).await;
    }
    for id in &ids {
        server.kill(id).await;
        let reply = server.wait(id).await;
        assert!(reply.ok().contains("bytes omitted here"), "{reply:?}");
    }
    let most = peak_kib(server.pid());
    println!("at most {most} KiB");
    assert!(most < MOST_KIB, "{most} KiB at most");
    server.close().await;
}

/// The most memory that a process was ever seen to hold, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let size = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    size.expect("a size")
}

/// Reads so many tasks while they end, one after the other in each of eight lanes: without a pause, so that reads fall
/// on every moment of an end.
///
/// # Panics
///
/// When a byte is lost or told twice, or an end.
pub async fn polls_at_the_end(rounds: u32) {
    const LANES: u32 = 8;
    let room = Room::new();
    let mut config = Config::default();
    config.tasks.max_concurrent_tasks_per_owner = 1_000;
    let harness = Arc::new(Harness::new(config, room.work()));
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let harness = Arc::clone(&harness);
        lanes.spawn(async move {
            for round in (lane..rounds).step_by(LANES as usize) {
                poll_one(&harness, round).await;
            }
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane.expect("every round holds");
    }
    Arc::into_inner(harness)
        .expect("the lanes are done")
        .close()
        .await;
    room.assert_empty();
}

async fn poll_one(harness: &Harness, round: u32) {
    let command = match round % 4 {
        0 => "printf A; sleep .05; printf B",
        1 => "printf A; printf B",
        2 => "printf A; printf B >&2",
        _ => "printf A; sleep .005; printf B",
    };
    let started = harness.background(command).await;
    let id = started.ok().rsplit(' ').next().unwrap_or_default().to_owned();
    let texts = if round.is_multiple_of(3) {
        let (one, other) = tokio::join!(poll(harness, &id), poll(harness, &id));
        [one, other].concat()
    } else {
        poll(harness, &id).await
    };
    let told = |what: char| {
        texts
            .iter()
            .flat_map(|text| text.chars())
            .filter(|&c| c == what)
            .count()
    };
    assert_eq!((told('A'), told('B')), (1, 1), "{command}: {texts:?}");
    let late = harness.call("task_output", json!({"task_id": id})).await;
    assert!(
        late.ok().starts_with("(no new output)\n[status: "),
        "{command}: {late:?}"
    );
}

/// Everything new that reads tell until they tell the end.
async fn poll(harness: &Harness, id: &str) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let reply = harness.call("task_output", json!({"task_id": id})).await;
        let (text, status) = reply
            .ok()
            .rsplit_once('\n')
            .unwrap_or_else(|| panic!("no status: {reply:?}"));
        if text != "(no new output)" {
            texts.push(text.replace("[stderr]", ""));
        }
        match status {
            "[status: completed, exit code: 0]" => return texts,
            status => assert!(status.starts_with("[status: running"), "{reply:?}"),
        }
        // A read that need not wait leaves no thread to those who end the task.
        tokio::task::yield_now().await;
    }
}
