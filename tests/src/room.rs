//! A directory and a mark on every process of one test.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dsh_testkit::process::{Marker, read_pid};
use dsh_testkit::{eventually, process};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::process::Command;

/// Begins a command that goes on when [`Room::go`] is called: after its start was acknowledged, so that its end is not
/// told with the acknowledgement already.
pub const GATED: &str = "until [ -e go ]; do sleep 0.02; done; ";

/// Where one test works. Every process that starts inside inherits the mark, so none can hide; dropping the room ends
/// what a failed test left.
#[derive(Debug)]
pub struct Room {
    directory: TempDir,
    marker: Marker,
}

impl Room {
    /// An empty room.
    ///
    /// # Panics
    ///
    /// When no directory can be made.
    pub fn new() -> Room {
        let directory = TempDir::new().expect("a temporary directory");
        for name in ["work", "home", "tmp"] {
            std::fs::create_dir(directory.path().join(name)).expect("a directory in the room");
        }
        Room {
            directory,
            marker: Marker::new(),
        }
    }

    /// Where commands run.
    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// The home directory, `DSH_HOME` too.
    pub fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Where temporary files go.
    pub fn tmp(&self) -> PathBuf {
        self.directory.path().join("tmp")
    }

    /// A file in the working directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// The variable that marks every process.
    pub fn mark(&self) -> (String, String) {
        self.marker.env()
    }

    /// Every live process that carries the mark.
    pub fn processes(&self) -> Vec<u32> {
        self.marker.survivors()
    }

    /// The `dsh` binary, to be started in the working directory: with the mark, and with this room for its home.
    ///
    /// # Panics
    ///
    /// When `DSH_BIN` is not set.
    pub fn dsh(&self) -> Command {
        self.settle(Command::new(binary()))
    }

    /// A shell that reads `script`, in which `"$0"` is the `dsh` binary; otherwise as [`dsh`](Self::dsh).
    ///
    /// # Panics
    ///
    /// When `DSH_BIN` is not set.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = self.settle(Command::new("sh"));
        command.arg("-c").arg(script).arg(binary());
        command
    }

    fn settle(&self, mut command: Command) -> Command {
        let (name, value) = self.mark();
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("DSH_HOME", self.home())
            .env("TMPDIR", self.tmp())
            .env(name, value)
            .kill_on_drop(true);
        command
    }

    /// The process id that a command wrote to `name`, as soon as it did.
    ///
    /// # Panics
    ///
    /// When it does not within the deadline.
    pub async fn pid(&self, name: &str) -> u32 {
        let file = self.file(name);
        eventually(&format!("{name} holds a process id"), || {
            read_pid(&file).is_some()
        })
        .await;
        read_pid(&file).expect("it was just there")
    }

    /// Waits until a command made the file `name`.
    ///
    /// # Panics
    ///
    /// When it does not within the deadline.
    pub async fn made(&self, name: &str) {
        let file = self.file(name);
        eventually(&format!("{name} exists"), || file.exists()).await;
    }

    /// Lets a command go on that began with [`GATED`].
    ///
    /// # Panics
    ///
    /// When the file cannot be made.
    pub fn go(&self) {
        std::fs::write(self.file("go"), "").expect("a file");
    }

    /// Every temporary file that is there.
    pub fn temporary_files(&self) -> Vec<PathBuf> {
        files_below(&self.tmp())
    }

    /// Asserts that no process and no temporary file is left.
    ///
    /// # Panics
    ///
    /// When something is.
    pub fn assert_empty(&self) {
        let left: Vec<String> = self.processes().into_iter().map(describe).collect();
        assert!(left.is_empty(), "left running: {left:?}");
        let files = self.temporary_files();
        assert!(files.is_empty(), "left on disk: {files:?}");
    }
}

pub(crate) fn binary() -> OsString {
    std::env::var_os("DSH_BIN").expect("DSH_BIN names the dsh binary: run `cargo xtask test`")
}

impl Default for Room {
    fn default() -> Self {
        Room::new()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut left = self.processes();
        while !left.is_empty() && Instant::now() < deadline {
            for pid in left {
                // Gone already is as good as killed.
                _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
            }
            std::thread::yield_now();
            left = self.processes();
        }
    }
}

fn describe(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    format!(
        "{pid} {} {command}",
        if process::is_gone(pid) {
            "(gone by now)"
        } else {
            ""
        }
    )
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_below(&path))
        } else {
            files.push(path)
        }
    }
    files
}
