//! What a command costs from the call to its end, beside a bare `posix_spawn` and wait; and how long a start keeps its
//! thread.

use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dsh_subprocess::{Cgroups, GuardConfig, Launcher, Limits, ProcessSpec};
use tokio::task::{JoinSet, spawn_blocking};

use super::Report;
use crate::figure::Unit;
use crate::rounds::{Start, each, in_turns};
use crate::row::{Row, Target};
use crate::{Effort, Failure};

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const BARE: &str = "`posix_spawn`";

/// How much memory the program holds meanwhile, which must not matter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harness {
    Small,
    Large,
}

/// A way to run the command.
#[derive(Clone)]
enum Way {
    Bare,
    Tokio,
    /// Until its tree was seen empty.
    Launched(Launcher),
}

/// What was measured of one way.
#[derive(Default)]
struct Holds([Vec<f64>; 5]);

pub(crate) async fn measure(effort: Effort, report: &Report, harness: Harness) -> Result<(), Failure> {
    let contained = Launcher::guarded(GuardConfig::own_program().cgroups(Cgroups::Auto))?;
    let some = Limits {
        pids: std::num::NonZeroU32::new(100),
        ..Limits::default()
    };
    let has_cgroups = contained.check_limits(&some).is_ok();
    let ways = [
        Way::Bare,
        Way::Tokio,
        Way::Launched(Launcher::groups()),
        Way::Launched(Launcher::guarded(
            GuardConfig::own_program().cgroups(Cgroups::Off),
        )?),
        Way::Launched(contained),
    ];
    one_at_a_time(effort, report, harness, &ways, has_cgroups).await?;
    if harness == Harness::Small {
        for at_once in [8, 64] {
            many_at_once(effort, report, &ways, at_once).await?;
        }
    }
    Ok(())
}

async fn one_at_a_time(
    effort: Effort,
    report: &Report,
    harness: Harness,
    ways: &[Way; 5],
    has_cgroups: bool,
) -> Result<(), Failure> {
    let mut holds = Holds::default();
    let rounds = effort.samples(80, 480);
    let [bare, tokio, group, guard, cgroup] = in_turns(rounds, Start::Warmed, async |way| {
        let begun = Instant::now();
        let held = run(ways[way].clone()).await?;
        holds.0[way].push(held.as_secs_f64());
        Ok(begun.elapsed().as_secs_f64())
    })
    .await?;
    let size = match harness {
        Harness::Small => "50 MiB",
        Harness::Large => "2 GiB",
    };
    let row = |name: &str, ours: &[f64], target| {
        let what = format!("`bash -c true`, {name}, harness of {size}");
        let row = Row::beside(what, Unit::Time, ours, BARE, &bare);
        report.row(row.map(|row| row.aims_at(target)))
    };
    row("`tokio::process`, exit", &tokio, Target::Nothing)?;
    row("group, seen empty", &group, Target::RatioAtMost(1.15))?;
    row("guard, proven empty", &guard, Target::RatioAtMost(1.15))?;
    if has_cgroups {
        row(
            "guard and cgroup, proven empty",
            &cgroup,
            Target::RatioAtMost(1.3),
        )?;
    } else {
        row("guard, asked for a cgroup (none here)", &cgroup, Target::Nothing)?;
    }
    let Holds([_, tokio, _, guard, _]) = holds;
    let what = format!("thread held by a start, guard, harness of {size}");
    let row = Row::beside(what, Unit::Time, &guard, "`tokio::process`", &tokio);
    report.row(row.map(|row| row.aims_at(Target::AtMost(150e-6))))
}

async fn many_at_once(
    effort: Effort,
    report: &Report,
    ways: &[Way; 5],
    at_once: usize,
) -> Result<(), Failure> {
    let rounds = (effort.samples(160, 960) / at_once).max(3);
    let [bare, tokio, group, guard, _] = in_turns(rounds, Start::Warmed, async |way| {
        let mut all = JoinSet::new();
        let begun = Instant::now();
        for _ in 0..at_once {
            all.spawn(run(ways[way].clone()));
        }
        while let Some(done) = all.join_next().await {
            done??;
        }
        Ok(each(at_once, begun.elapsed()).recip())
    })
    .await?;
    let row = |name: &str, ours: &[f64], target| {
        let what = format!("{at_once} at once, {name}");
        let row = Row::beside(what, Unit::Commands, ours, BARE, &bare);
        report.row(row.map(|row| row.aims_at(target)))
    };
    row("`tokio::process`", &tokio, Target::Nothing)?;
    row("group", &group, Target::RatioAtLeast(0.8))?;
    row("guard", &guard, Target::RatioAtLeast(0.8))
}

/// Runs the command to its end. How long the start held its thread.
async fn run(way: Way) -> Result<Duration, Failure> {
    match way {
        Way::Bare => {
            let (done, held) = held(spawn_blocking(|| command().spawn()?.wait())).await;
            done??;
            Ok(held)
        }
        Way::Tokio => {
            let mut command = tokio::process::Command::from(command());
            let (child, held) = held(async { command.process_group(0).spawn() }).await;
            child?.wait().await?;
            Ok(held)
        }
        Way::Launched(launcher) => {
            let mut spec = ProcessSpec::new("/bin/bash", "/");
            spec.bash_command = Some("true".into());
            spec.env = vec![("PATH".into(), PATH.into())];
            let (started, held) = held(launcher.spawn(spec)).await;
            drop(started?.tree.ended().await);
            Ok(held)
        }
    }
}

/// The output of a future, and the longest time that one poll of it took.
async fn held<F: Future>(future: F) -> (F::Output, Duration) {
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
