//! Signals in the first moments of each command.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use dsh_testkit::eventually;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use tests::Room;
use tokio::process::{Child, Command};

/// What goes on as long as its stdin does.
const READERS: [&[&str]; 3] = [
    &["mcp"],
    &["acp", "--model", "scripted:m"],
    &["run", "-", "--model", "scripted:m"],
];

/// Starts `dsh`, with a stdin that stays open.
fn started(room: &Room, arguments: &[&str]) -> Child {
    let mut command: Command = room.dsh();
    let command = command.args(arguments).stdin(Stdio::piped());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("dsh starts")
}

fn pid(child: &Child) -> u32 {
    child.id().expect("it was not waited for")
}

async fn signalled(mut child: Child, signal: Signal) -> ExitStatus {
    // Kept open: a wait would close it, and its end is an end, too.
    let _stdin = child.stdin.take();
    kill(Pid::from_raw(pid(&child).cast_signed()), signal).expect("it is there");
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
    ended.expect("it ends in time").expect("it was started")
}

/// Whether the process is past the first lines of its `main`: it has a handler, or a second thread.
fn has_begun(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let handled = field("SigCgt:").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let threads = field("Threads:").and_then(|count| count.trim().parse().ok());
    handled.unwrap_or(0) & (1 << (signal as u32 - 1)) != 0 || threads.unwrap_or(1) > 1
}

#[tokio::test]
async fn a_signal_while_the_configuration_is_read_is_the_exit_code() {
    let others: [&[&str]; 2] = [&["demo"], &["config", "show"]];
    for arguments in READERS.into_iter().chain(others) {
        for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
            let room = Room::new();
            // Nobody ever writes to it.
            let config = room.file("config.toml");
            mkfifo(&config, Mode::S_IRWXU).expect("a pipe with a name");
            let config_flag = ["--config", "config.toml"];
            let child = started(&room, &[&config_flag, arguments].concat());
            let mut open = OpenOptions::new();
            open.write(true)
                .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
            let mut writer = None;
            eventually("the configuration is being read", || {
                writer = open.open(&config).ok();
                writer.is_some()
            })
            .await;
            let ended = signalled(child, signal).await;
            assert_eq!(ended.code(), Some(code), "{arguments:?}: {ended}");
            room.assert_empty();
        }
    }
}

#[tokio::test]
async fn a_signal_at_any_early_moment_is_the_exit_code_once_main_has_begun() {
    for round in 0..40_u32 {
        let room = Room::new();
        room.script("m", serde_json::json!([tests::says("Hello.")]));
        let arguments = READERS[round as usize % READERS.len()];
        let child = started(&room, arguments);
        // sleep: any moment will do, and they differ.
        tokio::time::sleep(Duration::from_micros(u64::from(round) * 150)).await;
        let begun = has_begun(pid(&child), Signal::SIGTERM);
        let ended = signalled(child, Signal::SIGTERM).await;
        let by_signal = ended.signal() == Some(Signal::SIGTERM as i32);
        assert!(
            ended.code() == Some(143) || (by_signal && !begun),
            "round {round}, {arguments:?}, begun: {begun}: {ended}"
        );
        room.assert_empty();
    }
}
