//! The kit itself: what it sees is there, and what is not there it does not see.

#![expect(clippy::expect_used, reason = "a helper of tests fails like a test")]

use std::{
    os::{fd::AsRawFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use dsh_testkit::{Gate, LogCapture, eventually, eventually_within, process};

/// A child that ends with the test, whatever happens.
struct Kept(Child);

impl Kept {
    fn spawn(command: &mut Command) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.expect("a program of every system"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.end();
    }
}

fn sleeper() -> Command {
    let mut command = Command::new("sleep");
    command.arg("30").process_group(0);
    command
}

#[tokio::test]
async fn a_gate_opens_for_all_clones_and_stays_open() {
    let gate = Gate::new();
    assert!(!gate.is_open());
    let opener = gate.clone();
    let (_, ()) = tokio::join!(gate.opened(), async { opener.open() });
    assert!(gate.is_open());
    gate.opened().await;
}

#[tokio::test]
async fn a_fact_is_polled_until_it_is_true() {
    let mut polls = 0;
    eventually("the third poll", || {
        polls += 1;
        polls == 3
    })
    .await;
    assert_eq!(polls, 3);
}

#[test]
fn a_fact_that_stays_false_fails_by_name_at_the_deadline() {
    let start = Instant::now();
    let failed = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(eventually_within(
            "pigs to fly",
            Duration::from_millis(20),
            || false,
        ));
    })
    .join()
    .unwrap_err();
    let text = failed.downcast_ref::<String>().unwrap();
    assert!(text.contains("pigs to fly") && text.contains("20ms"), "{text}");
    assert!(start.elapsed() >= Duration::from_millis(20));
}

#[test]
fn a_capture_sees_all_threads_from_its_start_on() {
    let early = LogCapture::start();
    tracing::info!("said before");
    let late = LogCapture::start();
    std::thread::spawn(|| tracing::warn!(label = "elsewhere", "said after"))
        .join()
        .unwrap();

    assert!(early.contains("said before") && !late.contains("said before"));
    let lines = late.lines();
    let line = lines.iter().find(|line| line.contains("said after")).unwrap();
    assert!(
        line.contains("WARN") && line.contains("elsewhere") && !line.contains('\n'),
        "{line}"
    );
}

#[tokio::test]
async fn a_process_is_gone_when_it_has_ended_read_or_not() {
    assert!(!process::is_gone(std::process::id()));
    let mut child = Kept::spawn(&mut sleeper());
    let pid = child.pid();
    assert!(!process::is_gone(pid) && !process::zombie_children().contains(&pid));

    child.0.kill().unwrap();
    process::gone(pid).await;
    assert!(process::zombie_children().contains(&pid));
    child.0.wait().unwrap();
    assert!(process::is_gone(pid) && !process::zombie_children().contains(&pid));
}

#[test]
fn a_group_is_its_live_members() {
    let mut leader = Kept::spawn(&mut sleeper());
    let group = leader.pid();
    let mut member = Kept::spawn(Command::new("sleep").arg("30").process_group(group.cast_signed()));
    let mut members = process::group_members(group);
    members.sort_unstable();
    let mut expected = [group, member.pid()];
    expected.sort_unstable();
    assert_eq!(members, expected);

    leader.end();
    assert_eq!(process::group_members(group), [member.pid()]);
    member.end();
    assert!(process::group_members(group).is_empty());
}

#[tokio::test]
async fn a_marker_finds_who_inherited_it() {
    let (marker, other) = (process::Marker::new(), process::Marker::new());
    assert_ne!(marker.env(), other.env());
    let (name, value) = marker.env();
    let mut shell = Kept::spawn(
        Command::new("sh")
            .args(["-c", "sleep 30; exit"])
            .env(name, value)
            .process_group(0),
    );
    eventually("the shell and its child", || marker.survivors().len() == 2).await;
    assert!(marker.survivors().contains(&shell.pid()) && other.survivors().is_empty());

    let group = shell.pid();
    for pid in process::group_members(group) {
        Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status()
            .unwrap();
    }
    eventually("nobody", || marker.survivors().is_empty()).await;
    shell.end();
}

#[test]
fn open_descriptors_are_listed_with_what_they_refer_to() {
    let path = std::fs::canonicalize("/proc/self/exe").unwrap();
    let entry = |file: &std::fs::File| (file.as_raw_fd(), path.to_string_lossy().into_owned());
    let (one, other) = (
        std::fs::File::open(&path).unwrap(),
        std::fs::File::open(&path).unwrap(),
    );
    let (first, second) = (entry(&one), entry(&other));
    let listed = process::open_fds();
    assert!(listed.contains(&first) && listed.contains(&second), "{listed:?}");
    assert!(
        listed.iter().all(|(_, target)| !target.ends_with("/fd")),
        "not the listing's own: {listed:?}"
    );
    drop(one);
    let listed = process::open_fds();
    assert!(!listed.contains(&first) && listed.contains(&second), "{listed:?}");
}

#[test]
fn a_pid_file_is_read_when_it_is_there() {
    let path = std::env::temp_dir().join(format!("dsh-testkit-pid-{}", std::process::id()));
    assert_eq!(process::read_pid(&path), None);
    for (content, pid) in [("", None), ("42\n", Some(42)), ("42", Some(42)), ("pid\n", None)] {
        std::fs::write(&path, content).unwrap();
        assert_eq!(process::read_pid(&path), pid, "{content:?}");
    }
    std::fs::remove_file(&path).unwrap();
}
