//! What the demonstration claims, and whether it was so.

use std::fs;
use std::time::Duration;

use crate::output::say;

/// The claims so far, each with its verdict.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    checked: Vec<(String, bool)>,
    pids: Vec<u32>,
}

impl Facts {
    /// Records a claim and whether it holds.
    pub(crate) fn check(&mut self, claim: &str, holds: bool) {
        self.checked.push((claim.to_owned(), holds));
    }

    /// Notes the pids that the server printed; they must exist now, or the later claims would prove nothing.
    pub(crate) fn watch_pids(&mut self, output: &str) {
        self.pids = output
            .lines()
            .filter_map(|line| line.split_once(" pid ")?.1.trim().parse().ok())
            .collect();
        let alive = self.pids.len() == 2 && self.pids.iter().all(|pid| is_alive(*pid));
        self.check("the server and its worker were running", alive);
    }

    /// Claims that the processes noted before are gone, as the kernel sees it.
    pub(crate) fn both_pids_are_gone(&mut self) {
        let gone = !self.pids.iter().any(|pid| is_alive(*pid));
        self.check(
            "once the task reads killed, the server and its worker are gone",
            gone,
        );
    }

    /// Claims that this process has no child left at all. What guarded the commands gets a moment to leave.
    pub(crate) async fn everything_is_gone(&mut self) {
        let none_left = async {
            while !children().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let gone = tokio::time::timeout(Duration::from_secs(5), none_left)
            .await
            .is_ok();
        self.check("after the shutdown no process of ours is left", gone);
    }

    /// Whether every claim held.
    pub(crate) fn all_hold(&self) -> bool {
        self.checked.iter().all(|(_, holds)| *holds)
    }

    /// Prints every claim with its verdict.
    pub(crate) fn print(&self) -> std::io::Result<()> {
        say("\n== Facts")?;
        for (claim, holds) in &self.checked {
            say(format_args!(
                "{} {claim}",
                if *holds { "[true] " } else { "[FALSE]" }
            ))?;
        }
        say(if self.all_hold() {
            "All of it was so."
        } else {
            "Not all of it was so: this is a fault of dsh."
        })
    }
}

/// Whether the process exists and has not ended; a zombie has.
fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// The pids of this process' children, zombies included.
fn children() -> Vec<u32> {
    let own = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| stat(*pid).is_some_and(|(_, parent)| parent == own))
        .collect()
}

/// State letter and parent of a process: `/proc/<pid>/stat`, fields 3 and 4, after the name in parentheses.
fn stat(pid: u32) -> Option<(char, u32)> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = line[line.rfind(')')? + 1..].split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
