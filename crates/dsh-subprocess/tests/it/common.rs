//! Processes in groups, and short ways to use them.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use dsh_subprocess::{Launcher, ProcessSpec, Proof, SpawnError, Spawned, TreeEnd};
use dsh_testkit::process::group_members;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;

/// The PATH that processes of these tests get.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The longest a test may take.
const LIMIT: Duration = Duration::from_secs(60);

/// `bash -c script` in the root directory, with a PATH and nothing else.
pub(crate) fn bash(script: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new("bash", "/");
    spec.args = vec!["-c".into(), script.into()];
    spec.env = vec![("PATH".into(), PATH.into())];
    spec
}

pub(crate) fn bash_in(directory: &Path, script: &str) -> ProcessSpec {
    ProcessSpec {
        cwd: directory.to_owned(),
        ..bash(script)
    }
}

/// A process in a group of its own.
pub(crate) async fn spawn(spec: ProcessSpec) -> Result<Spawned, SpawnError> {
    Launcher::groups().spawn(spec).await
}

pub(crate) async fn start(script: &str) -> Spawned {
    spawn(bash(script)).await.unwrap()
}

/// Runs a test on a runtime of its own, not longer than the limit.
pub(crate) fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let output = runtime.block_on(async { tokio::time::timeout(LIMIT, test).await });
    output.expect("the test takes too long")
}

/// The next line that a process prints.
pub(crate) async fn line(pipe: &mut Receiver) -> String {
    let mut line = Vec::new();
    loop {
        match pipe.read_u8().await {
            Ok(b'\n') => return String::from_utf8(line).unwrap(),
            Ok(byte) => line.push(byte),
            Err(error) => panic!(
                "the output ended after {:?}: {error}",
                String::from_utf8_lossy(&line)
            ),
        }
    }
}

/// A line that is a process id.
pub(crate) async fn pid_line(pipe: &mut Receiver) -> u32 {
    line(pipe).await.parse().unwrap()
}

/// All that a process prints.
pub(crate) async fn text(pipe: Receiver) -> String {
    let mut text = String::new();
    BufReader::new(pipe).read_to_string(&mut text).await.unwrap();
    text
}

/// Asserts an end that proves the group empty, and that it is.
pub(crate) fn assert_empty(end: &TreeEnd, group: u32) {
    assert_eq!((end.proof, end.survivors.len()), (Proof::Group, 0), "{end:?}");
    assert_eq!(group_members(group), Vec::<u32>::new());
}

/// The state letter of a process, if there is one.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
