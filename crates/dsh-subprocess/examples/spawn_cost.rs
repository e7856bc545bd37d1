//! What a process costs here, as ratios to a bare `posix_spawn` and wait in the same run: from the call to the
//! exit of `bash -c true`, and to the end of its tree being proven. Medians of interleaved rounds. Then how long the
//! calls kept a thread of the runtime, and what the guards at rest hold of the memory.
//!
//! `cargo run --release -p dsh-subprocess --example spawn_cost -- [ROUNDS] [MEBIBYTES] [WAY]`; the second argument
//! is memory that the program holds meanwhile, which must not matter; the third one leaves out every way but those that
//! contain it.

use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dsh_subprocess::{Cgroups, GuardConfig, Launcher, ProcessSpec};
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
    Tokio,
    Launched(Launcher, Until),
}

#[derive(Clone, Copy)]
enum Until {
    Exit,
    Proof,
}

/// What was measured of one way.
#[derive(Default, Clone)]
struct Sample {
    /// Per command.
    times: Vec<Duration>,
    /// The longest time that one start held the thread that it was awaited on.
    holds: Vec<Duration>,
}

async fn measure(rounds: usize, at_once: usize, only: &str) -> Result<(), Failure> {
    let groups = Launcher::groups();
    let guarded = Launcher::guarded(GuardConfig::own_program().cgroups(Cgroups::Off))?;
    let contained = Launcher::guarded(GuardConfig::own_program().cgroups(Cgroups::Auto))?;
    let mut ways = vec![
        ("bare posix_spawn, exit", Way::Bare),
        ("tokio::process, exit", Way::Tokio),
        ("group, exit", Way::Launched(groups.clone(), Until::Exit)),
        ("group, seen empty", Way::Launched(groups, Until::Proof)),
        ("guard, exit", Way::Launched(guarded.clone(), Until::Exit)),
        ("guard, proven empty", Way::Launched(guarded, Until::Proof)),
        ("cgroup, exit", Way::Launched(contained.clone(), Until::Exit)),
        ("cgroup, proven empty", Way::Launched(contained, Until::Proof)),
    ];
    ways.retain(|(name, _)| name.contains(only));
    let mut samples = vec![Sample::default(); ways.len()];
    for round in 0..rounds {
        for turn in 0..ways.len() {
            // Whoever comes first in a round pays for what the last one left behind, so the first one changes.
            let index = (round + turn) % ways.len();
            let (Some((_, way)), Some(sample)) = (ways.get(index), samples.get_mut(index)) else {
                continue;
            };
            let begun = Instant::now();
            sample.holds.extend(run_all(way, at_once).await?);
            sample.times.push(begun.elapsed() / u32::try_from(at_once)?);
        }
    }
    println!("{at_once} at once, {rounds} rounds");
    let mut reference = None;
    for ((name, _), Sample { times, holds }) in ways.iter().zip(samples) {
        let [low, median, high] = percentiles(times, [10, 50, 90]);
        let ratio = median.as_secs_f64() / reference.get_or_insert(median).as_secs_f64();
        let [usual, worst] = percentiles(holds, [50, 99]);
        println!(
            "  {name:<24} p10 {low:>9.1?}  median {median:>9.1?}  p90 {high:>9.1?}  {ratio:.2} x   \
             holds its thread p50 {usual:>7.1?}  p99 {worst:>7.1?}"
        );
    }
    show_guards();
    Ok(())
}

fn percentiles<const N: usize>(mut values: Vec<Duration>, asked: [usize; N]) -> [Duration; N] {
    values.sort_unstable();
    asked.map(|percent| {
        values
            .get(values.len() * percent / 100)
            .copied()
            .unwrap_or_default()
    })
}

/// Runs the command some times at once. How long each start held its thread.
async fn run_all(way: &Way, at_once: usize) -> Result<Vec<Duration>, Failure> {
    if at_once == 1 {
        return Ok(vec![run(way.clone()).await?]);
    }
    let mut all = JoinSet::new();
    for _ in 0..at_once {
        all.spawn(run(way.clone()));
    }
    all.join_all().await.into_iter().collect()
}

async fn run(way: Way) -> Result<Duration, Failure> {
    match way {
        Way::Bare => {
            let (done, held) = timed(spawn_blocking(|| command().spawn()?.wait())).await;
            done??;
            Ok(held)
        }
        Way::Tokio => {
            let mut command = tokio::process::Command::from(command());
            let (child, held) = timed(async { command.process_group(0).spawn() }).await;
            child?.wait().await?;
            Ok(held)
        }
        Way::Launched(launcher, until) => {
            let mut spec = ProcessSpec::new("/bin/bash", "/");
            spec.bash_command = Some("true".into());
            spec.env = vec![("PATH".into(), PATH.into())];
            let (started, held) = timed(launcher.spawn(spec)).await;
            let tree = started?.tree;
            match until {
                Until::Exit => drop(tree.leader_exit().await),
                Until::Proof => drop(tree.ended().await),
            }
            Ok(held)
        }
    }
}

/// The output of a future, and the longest time that one poll of it took.
async fn timed<F: Future>(future: F) -> (F::Output, Duration) {
    let mut future = pin!(future);
    let mut longest = Duration::ZERO;
    let output = std::future::poll_fn(|context| {
        let begun = Instant::now();
        let polled = future.as_mut().poll(context);
        longest = longest.max(begun.elapsed());
        polled
    });
    let output = output.await;
    (output, longest)
}

fn command() -> Command {
    // By its path and without a directory: otherwise the standard library may fork.
    let mut command = Command::new("/bin/bash");
    command.args(["-c", "true"]).env_clear().env("PATH", PATH);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The supervisor and the guards at rest, with their shares of the memory in kB.
fn show_guards() {
    let supervisors = children(std::process::id());
    let guards = supervisors.iter().flat_map(|supervisor| children(*supervisor));
    let share = |pid| kilobytes(pid, "Pss:");
    let own = |pid| kilobytes(pid, "Private_Dirty:");
    let all: Vec<_> = guards.collect();
    println!(
        "  at rest: supervisor {:?} kB; guards {:?} kB, of which their own {:?} kB",
        supervisors.iter().map(|pid| share(*pid)).collect::<Vec<_>>(),
        all.iter().map(|pid| share(*pid)).collect::<Vec<_>>(),
        all.iter().map(|pid| own(*pid)).collect::<Vec<_>>(),
    );
}

fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>())
        .collect()
}

fn kilobytes(pid: u32, what: &str) -> usize {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix(what));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}
