//! A world of its own for tests that decide which number the next process gets. Linux only.

use std::{
    fs,
    process::{Child, Command},
};

const INSIDE: &str = "TESTKIT_NAMESPACE";
const LAST: &str = "/proc/sys/kernel/ns_last_pid";
/// A namespace forks for nobody but its test, but tests have threads, which have numbers, too.
const ATTEMPTS: u32 = 200;

/// Runs `body` in this test program, started again for the one test in a pid namespace with a `/proc` of its own.
///
/// Where the system does not permit that, nothing runs, and [`not_run`] says so.
///
/// # Panics
///
/// When the test fails there.
pub fn in_pid_namespace(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    if let Err(reason) = permitted() {
        return not_run(test, &reason);
    }
    // The shell stays as the first process: that has its own rules for signals and orphans.
    let script = "\"$0\" --exact \"$1\" --nocapture --test-threads=1; exit $?";
    let program = std::env::current_exe().unwrap_or_default();
    let output = unshare(script).arg(program).arg(test).env(INSIDE, "1").output();
    let passed = output.as_ref().is_ok_and(|output| {
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed")
    });
    let shown = output
        .map(|output| [output.stdout, output.stderr].concat())
        .unwrap_or_default();
    assert!(passed, "{}", String::from_utf8_lossy(&shown));
}

/// Starts a process that has this number. In a pid namespace of its own, where nobody else forks.
///
/// # Errors
///
/// When the command cannot be started, or the number is taken.
pub fn spawn_as(pid: u32, command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..ATTEMPTS {
        give_next(pid);
        let mut child = command.spawn()?;
        if child.id() == pid {
            return Ok(child);
        }
        child.kill()?;
        child.wait()?;
    }
    Err(std::io::Error::other(format!("the number {pid} is taken")))
}

/// The next process gets this number, or the next free one after it. In a pid namespace of its own.
///
/// # Panics
///
/// When the system does not permit it.
pub fn give_next(pid: u32) {
    let written = fs::write(LAST, (pid - 1).to_string());
    assert!(written.is_ok(), "{written:?}");
}

/// Says loudly that a test did not run, and why: on standard error, and in the file that `DSH_NOT_RUN` names.
pub fn not_run(test: &str, reason: &str) {
    let line = format!("NOT RUN {test}: {}\n", reason.trim());
    eprint!("{line}");
    if let Some(file) = std::env::var_os("DSH_NOT_RUN") {
        use std::io::Write;
        let opened = fs::OpenOptions::new().append(true).create(true).open(file);
        let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

fn permitted() -> Result<(), String> {
    match unshare(&format!("echo 2 >{LAST}")).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}

fn unshare(script: &str) -> Command {
    let mut command = Command::new("unshare");
    let own = fs::metadata("/proc/self").is_ok_and(|owner| std::os::unix::fs::MetadataExt::uid(&owner) != 0);
    if own {
        command.args(["--user", "--map-root-user"]);
    }
    command.args([
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "sh",
        "-c",
        script,
    ]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_again() {
        in_pid_namespace("namespace::tests::a_number_comes_again", || {
            for _ in 0..3 {
                let mut child = spawn_as(4000, &mut Command::new("true")).ok();
                assert_eq!(child.as_ref().map(Child::id), Some(4000));
                assert!(child.as_mut().is_some_and(|child| child.wait().is_ok()));
            }
        });
    }
}
