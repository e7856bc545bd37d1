//! What a process costs here, as ratios to a bare `posix_spawn` and wait in the same run: from the call to the
//! exit of `bash -c true`, and to the end of its tree being proven. Medians of interleaved rounds.
//!
//! `cargo run --release -p dsh-subprocess --example spawn_cost -- [ROUNDS] [MEBIBYTES] [WAY]`; the second argument
//! is memory that the program holds meanwhile, which must not matter; the third one leaves out every way but those that
//! contain it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dsh_subprocess::{GuardConfig, Launcher, ProcessSpec};
use tokio::task::{JoinSet, spawn_blocking};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn main() -> Result<(), Failure> {
    dsh_subprocess::guard_entry();
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments
        .next()
        .map_or(Ok(300), |rounds| rounds.parse::<usize>())?;
    let ballast = vec![1_u8; arguments.next().map_or(Ok(50), |size| size.parse::<usize>())? << 20];
    let only = arguments.next().unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    for at_once in [1, 8] {
        runtime.block_on(measure(rounds / at_once, at_once, &only))?;
    }
    drop(ballast);
    Ok(())
}

/// A way to run the command, and what is measured of it.
#[derive(Clone)]
enum Way {
    Bare,
    Launched(Launcher, Until),
}

#[derive(Clone, Copy)]
enum Until {
    Exit,
    Proof,
}

async fn measure(rounds: usize, at_once: usize, only: &str) -> Result<(), Failure> {
    let guarded = Launcher::guarded(GuardConfig::own_program())?;
    let mut ways = vec![
        ("bare posix_spawn, exit", Way::Bare),
        ("group, exit", Way::Launched(Launcher::groups(), Until::Exit)),
        (
            "group, seen empty",
            Way::Launched(Launcher::groups(), Until::Proof),
        ),
        ("guard, exit", Way::Launched(guarded.clone(), Until::Exit)),
        ("guard, proven empty", Way::Launched(guarded, Until::Proof)),
    ];
    ways.retain(|(name, _)| name.contains(only));
    let mut samples = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        for turn in 0..ways.len() {
            // Whoever comes first in a round pays for what the last one left behind, so the first one changes.
            let index = (round + turn) % ways.len();
            let (Some((_, way)), Some(sample)) = (ways.get(index), samples.get_mut(index)) else {
                continue;
            };
            sample.push(time(way, at_once).await?);
        }
    }
    println!("{at_once} at once, {rounds} rounds");
    let mut reference = None;
    for ((name, _), mut sample) in ways.iter().zip(samples) {
        sample.sort_unstable();
        let at = |percent: usize| {
            sample
                .get(sample.len() * percent / 100)
                .copied()
                .unwrap_or_default()
        };
        let median = at(50);
        let reference = reference.get_or_insert(median).as_secs_f64();
        let ratio = median.as_secs_f64() / reference;
        println!(
            "  {name:<24} p10 {:>9.1?}  median {median:>9.1?}  p90 {:>9.1?}  {ratio:.2} x",
            at(10),
            at(90)
        );
    }
    Ok(())
}

/// The time per command.
async fn time(way: &Way, at_once: usize) -> Result<Duration, Failure> {
    let start = Instant::now();
    if at_once == 1 {
        run(way.clone()).await?;
        return Ok(start.elapsed());
    }
    let mut all = JoinSet::new();
    for _ in 0..at_once {
        all.spawn(run(way.clone()));
    }
    while let Some(run) = all.join_next().await {
        run??;
    }
    Ok(start.elapsed() / u32::try_from(at_once)?)
}

async fn run(way: Way) -> Result<(), Failure> {
    match way {
        Way::Bare => spawn_blocking(bare).await??,
        Way::Launched(launcher, until) => {
            let mut spec = ProcessSpec::new("/bin/bash", "/");
            spec.bash_command = Some("true".into());
            spec.env = vec![("PATH".into(), PATH.into())];
            let tree = launcher.spawn(spec).await?.tree;
            match until {
                Until::Exit => drop(tree.leader_exit().await),
                Until::Proof => drop(tree.ended().await),
            }
        }
    }
    Ok(())
}

fn bare() -> std::io::Result<()> {
    // By its path and without a directory: otherwise the standard library may fork.
    let mut command = Command::new("/bin/bash");
    command.args(["-c", "true"]).env_clear().env("PATH", PATH);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn()?.wait().map(drop)
}
