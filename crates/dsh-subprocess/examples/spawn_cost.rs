//! What a process costs here, as a ratio to the standard library in the same run: from the call to the
//! exit of `bash -c 'exit 0'`, medians of interleaved rounds.
//!
//! `cargo run --release -p dsh-subprocess --example spawn_cost -- [ROUNDS] [MEBIBYTES]`; the second argument
//! is memory that the program holds meanwhile, which must not matter.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dsh_subprocess::{Launcher, ProcessSpec};

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    dsh_subprocess::guard_entry();
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let rounds = arguments.next().transpose()?.unwrap_or(500);
    let ballast = vec![1_u8; arguments.next().transpose()?.unwrap_or(0) << 20];
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(measure(rounds))?;
    drop(ballast);
    Ok(())
}

async fn measure(rounds: usize) -> Result<(), Box<dyn std::error::Error>> {
    let (mut standard, mut exits, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        standard.push(tokio::task::spawn_blocking(run_standard).await??);
        let start = Instant::now();
        let mut spec = ProcessSpec::new("bash", "/");
        spec.args = vec!["-c".into(), "exit 0".into()];
        spec.env = vec![("PATH".into(), PATH.into())];
        let tree = Launcher::groups().spawn(spec).await?.tree;
        tree.leader_exit().await;
        exits.push(start.elapsed());
        tree.ended().await;
        ends.push(start.elapsed());
    }
    let reference = median(standard);
    println!("standard library, exit: {reference:?}");
    for (what, sample) in [("exit", exits), ("seen empty", ends)] {
        let median = median(sample);
        println!(
            "here, {what}: {median:?}, {:.2} x",
            median.as_secs_f64() / reference.as_secs_f64()
        );
    }
    Ok(())
}

fn run_standard() -> std::io::Result<Duration> {
    let start = Instant::now();
    // By its path: for a bare name and a changed PATH the standard library forks, and is slower by far.
    let mut command = Command::new("/bin/bash");
    command.args(["-c", "exit 0"]).env_clear().env("PATH", PATH);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn()?.wait()?;
    Ok(start.elapsed())
}

fn median(mut sample: Vec<Duration>) -> Duration {
    sample.sort_unstable();
    sample.get(sample.len() / 2).copied().unwrap_or_default()
}
