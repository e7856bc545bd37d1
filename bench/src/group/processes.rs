//! What `/proc` says of processes.

use std::time::Duration;

/// The processes below one, without itself.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut all = children(pid);
    let mut at = 0;
    while let Some(next) = all.get(at).copied() {
        all.extend(children(next));
        at += 1;
    }
    all
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>())
        .collect()
}

/// Whether a process runs this program by now.
pub(crate) fn has_become(pid: u32, program: &str) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.trim() == program)
}

/// What all threads of a process have taken of the processors.
pub(crate) fn cpu_time(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let mut sum = 0;
    for thread in threads.into_iter().flatten().flatten() {
        // A thread that is just gone took nothing that matters here.
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        sum += stat.split(' ').next().unwrap_or_default().parse().unwrap_or(0);
    }
    Duration::from_nanos(sum)
}

/// A line of `status` or `smaps_rollup` of a process, in bytes; 0 where there is none.
pub(crate) fn bytes(pid: u32, file: &str, line: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|found| found.strip_prefix(line));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.0
}
