//! Who wakes up while there is nothing to do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dsh_testkit::eventually;

use crate::{Server, ServerOptions};

/// How often a thread has been switched to and away from, by process, thread and name.
type Switches = BTreeMap<(u32, u32, String), u64>;

/// A server with so many commands that do nothing, watched for two seconds in which nobody asks it anything.
///
/// # Panics
///
/// When any thread of the server, its supervisor or its guards ran in that time.
pub async fn nobody_wakes(tasks: usize) {
    let config = format!("[tasks]\nmax_concurrent_tasks_per_owner = {tasks}\n");
    let options = ServerOptions {
        config: &config,
        ..ServerOptions::default()
    };
    let mut server = Server::start_with(options).await;
    for _ in 0..tasks {
        server.background("exec sleep 1000").await;
    }
    let pid = server.pid();
    eventually("every command sleeps", || {
        let sleeping = switches(pid).into_keys().filter(|(_, _, name)| name == "sleep");
        sleeping.count() == tasks
    })
    .await;
    // A start may still be followed up: the last ready guards are made, threads of a pool find nothing more to do and end.
    let mut before = settled(pid).await;
    let after = after_a_while(pid).await;
    before.retain(|thread, count| after.get(thread) != Some(count));
    assert!(before.is_empty(), "these ran: {before:?}\n{after:?}");

    let names: BTreeSet<_> = after.keys().map(|(_, _, name)| name.as_str()).collect();
    let processes: BTreeSet<_> = after.keys().map(|(process, _, _)| process).collect();
    println!(
        "{} processes, {} threads: {names:?}",
        processes.len(),
        after.len()
    );
    // The commands, a guard for each, the server and the supervisor.
    assert!(processes.len() >= 2 * tasks + 2, "{names:?}");
    server.close().await;
}

/// Waits for a second in which no thread ended or began.
async fn settled(pid: u32) -> Switches {
    let mut before = switches(pid);
    for _ in 0..30 {
        // sleep: the second is what is looked at.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = switches(pid);
        if after.keys().eq(before.keys()) {
            return after;
        }
        before = after;
    }
    panic!("threads come and go: {before:?}");
}

async fn after_a_while(pid: u32) -> Switches {
    // sleep: that nothing happens is a fact about time.
    tokio::time::sleep(Duration::from_secs(2)).await;
    switches(pid)
}

/// Of a process and all below it.
fn switches(root: u32) -> Switches {
    let parents: BTreeMap<u32, u32> = numbers("/proc")
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let is_below = |mut pid: u32| {
        while pid != root {
            match parents.get(&pid) {
                Some(&parent) => pid = parent,
                None => return false,
            }
        }
        true
    };
    let mut all = Switches::new();
    for &process in parents.keys().filter(|&&pid| is_below(pid)) {
        for thread in numbers(&format!("/proc/{process}/task")) {
            let status = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/status"));
            // One that is just gone is no part of the rest.
            let Ok(status) = status else { continue };
            let name = field(&status, "Name:").unwrap_or_default().to_owned();
            let count = |name| field(&status, name).and_then(|count| count.parse::<u64>().ok());
            let voluntary = count("voluntary_ctxt_switches:").expect("a count");
            let involuntary = count("nonvoluntary_ctxt_switches:").expect("a count");
            all.insert((process, thread, name), voluntary + involuntary);
        }
    }
    all
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    field(&status, "PPid:")?.parse().ok()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

fn numbers(directory: &str) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
