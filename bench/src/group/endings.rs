//! Ends: of a large tree until nobody of it is left, and of all tasks of an owner; beside a signal to each process group
//! and a wait for each child.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dsh_subprocess::{GuardConfig, Launcher, ProcessSpec, Proof};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;

use super::Report;
use super::core::Core;
use super::processes::has_become;
use crate::figure::Unit;
use crate::rounds::{Start, in_turns};
use crate::row::{Row, Target};
use crate::{Effort, Failure};

const MEMBERS: usize = 100;
const TASKS: usize = 500;
const GRACE: Duration = Duration::from_secs(3);

pub(crate) async fn measure(effort: Effort, report: &Report) -> Result<(), Failure> {
    let launcher = Launcher::guarded(GuardConfig::own_program())?;
    let rounds = effort.samples(5, 20);
    let [ours, floor] = in_turns(rounds, Start::Warmed, async |way| match way {
        0 => end_tree(&launcher).await,
        _ => end_group().await,
    })
    .await?;
    let what = format!("kill of a tree of {MEMBERS} to proven empty");
    let row = Row::beside(what, Unit::Time, &ours, "`kill(-pgid)`, reap", &floor);
    report.row(row.map(|row| row.aims_at(Target::RatioAtMost(1.5))))?;

    let core = Core::new()?;
    let mut round = 0;
    let rounds = effort.samples(2, 7);
    let [ours, floor] = in_turns(rounds, Start::Warmed, async |way| match way {
        0 => {
            round += 1;
            dispose(&core, round).await
        }
        _ => end_groups().await,
    })
    .await?;
    core.shutdown().await;
    let what = format!("disposal of an owner with {TASKS} live tasks");
    let row = Row::beside(what, Unit::Time, &ours, "`kill(-pgid)`, reap", &floor);
    report.row(row.map(|row| row.aims_at(Target::RatioAtMost(1.5))))
}

/// A shell and what it started, under a guard.
async fn end_tree(launcher: &Launcher) -> Result<f64, Failure> {
    let mut spec = ProcessSpec::new("/bin/bash", "/");
    let others = MEMBERS - 1;
    let script = format!("for n in {{1..{others}}}; do sleep 1000 & done; echo; wait");
    spec.bash_command = Some(script.into());
    spec.env = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    let mut started = launcher.spawn(spec).await?;
    started.stdout.read_exact(&mut [0]).await?;
    loop {
        let members = started.tree.members();
        let asleep = members.iter().filter(|member| has_become(member.pid, "sleep"));
        if asleep.count() == others {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let begun = Instant::now();
    started.tree.terminate(GRACE);
    let end = started.tree.ended().await;
    let took = begun.elapsed().as_secs_f64();
    match end.proof {
        Proof::Guard => Ok(took),
        other => Err(format!("the tree ended as {other:?}").into()),
    }
}

/// As many children in one group.
async fn end_group() -> Result<f64, Failure> {
    let mut children: Vec<Child> = Vec::new();
    for _ in 0..MEMBERS {
        let group = children.first().map_or(0, Child::id);
        children.push(sleeper(group)?);
    }
    asleep(&children).await;
    let group = children.first().map_or(0, Child::id);
    let begun = Instant::now();
    signal(group)?;
    for child in &mut children {
        child.wait()?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

async fn dispose(core: &Core, round: usize) -> Result<f64, Failure> {
    let owner = core.another(&format!("owner of round {round}"))?;
    core.start_silent(owner.agent(), TASKS).await?;
    let begun = Instant::now();
    owner.dispose().await?;
    Ok(begun.elapsed().as_secs_f64())
}

/// As many children, each in a group of its own.
async fn end_groups() -> Result<f64, Failure> {
    let children: Result<Vec<Child>, Failure> = (0..TASKS).map(|_| sleeper(0)).collect();
    let mut children = children?;
    asleep(&children).await;
    let begun = Instant::now();
    for child in &children {
        signal(child.id())?;
    }
    for child in &mut children {
        child.wait()?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn sleeper(group: u32) -> Result<Child, Failure> {
    let mut command = Command::new("sleep");
    command.arg("1000").process_group(group.try_into()?);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command.spawn()?)
}

async fn asleep(children: &[Child]) {
    while !children.iter().all(|child| has_become(child.id(), "sleep")) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn signal(group: u32) -> Result<(), Failure> {
    Ok(killpg(Pid::from_raw(group.try_into()?), Signal::SIGTERM)?)
}
