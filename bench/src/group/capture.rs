//! How fast output is taken in: 1 GiB, from the start of the command until all of it was counted, beside a plain reader
//! that throws away what it reads, and beside `cat` into a file.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use dsh_bash::{BashExecutor, BashRequest, EndReason};
use dsh_bash_local::{LocalBash, LocalBashConfig};
use dsh_scope::Scope;
use dsh_subprocess::{GuardConfig, Launcher};

use super::Report;
use crate::figure::Unit;
use crate::rounds::{Start, in_turns};
use crate::row::{Row, Target};
use crate::{Effort, Failure};

const BYTES: u64 = 1 << 30;

/// What the plain reader reads at once, and what the writers here write at once.
const BLOCK: usize = 64 * 1024;

/// How often whoever only counts looks.
const LOOK: Duration = Duration::from_millis(2);

/// What is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Flood {
    /// Lines of 80 bytes, 64 KiB at once.
    Lines,
    /// One line that never ends.
    Line,
}

impl Flood {
    /// Writes for as long as somebody reads.
    pub(crate) fn write(self) -> Result<(), Failure> {
        let mut block = vec![b'x'; BLOCK];
        match self {
            Flood::Lines => {
                let ends = block.iter_mut().skip(79).step_by(80);
                ends.for_each(|byte| *byte = b'\n');
            }
            Flood::Line => {}
        }
        let mut stdout = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        while stdout.write_all(&block).is_ok() {}
        Ok(())
    }
}

pub(crate) async fn measure(effort: Effort, report: &Report) -> Result<(), Failure> {
    let scope = Scope::root("capture");
    let launcher = Launcher::guarded(GuardConfig::own_program())?;
    let executor = |max_spill_bytes| {
        let config = LocalBashConfig {
            max_spill_bytes,
            max_total_spill_bytes: 1e12,
            ..LocalBashConfig::default()
        };
        LocalBash::with_launcher(&scope, config, launcher.clone())
    };
    let (without, with) = (executor(1.0)?, executor(4e9)?);
    let program = std::env::current_exe()?;
    let program = program.display();
    let kinds = [
        ("blocks of 64 KiB", format!("exec '{program}' flood lines")),
        ("one endless line", format!("exec '{program}' flood line")),
        ("`yes`", "exec yes".to_owned()),
    ];
    let rounds = effort.samples(3, 7);
    for (kind, command) in &kinds {
        let [ours, plain, ours_on_disk, cat] = in_turns(rounds, Start::Cold, async |way| match way {
            0 => executed(&without, command).await,
            1 => {
                let command = command.clone();
                tokio::task::spawn_blocking(move || thrown_away(&command)).await?
            }
            2 => executed(&with, command).await,
            _ => into_a_file(command).await,
        })
        .await?;
        let what = format!("capture of 1 GiB, {kind}");
        let row = Row::beside(what, Unit::Rate, &ours, "reader that throws away", &plain);
        report.row(row.map(|row| row.aims_at(Target::RatioAtLeast(0.9))))?;
        let what = format!("capture of 1 GiB, {kind}, all of it on disk");
        let row = Row::beside(what, Unit::Rate, &ours_on_disk, "`cat > file`", &cat);
        report.row(row.map(|row| row.aims_at(Target::RatioAtLeast(0.6))))?;
    }
    scope.close().await?;
    Ok(())
}

/// Bytes in a second.
#[expect(clippy::cast_precision_loss, reason = "a power of two")]
fn rate(begun: Instant) -> f64 {
    BYTES as f64 / begun.elapsed().as_secs_f64()
}

async fn executed(bash: &LocalBash, command: &str) -> Result<f64, Failure> {
    let begun = Instant::now();
    let request = BashRequest {
        workdir: Some(Path::new("/").into()),
        ..BashRequest::new(command)
    };
    let process = bash.start(&bash.resolve(request)?)?;
    while process.output().len() < BYTES {
        tokio::time::sleep(LOOK).await;
    }
    let rate = rate(begun);
    process.terminate(EndReason::Asked);
    process.ended().await;
    Ok(rate)
}

fn thrown_away(command: &str) -> Result<f64, Failure> {
    let begun = Instant::now();
    let mut child = start(command)?;
    let mut stdout = child.stdout.take().ok_or("the output is a pipe")?;
    let (mut buffer, mut read) = (vec![0; BLOCK], 0);
    while read < BYTES {
        match stdout.read(&mut buffer)? {
            0 => return Err("the output ended early".into()),
            count => read += count as u64,
        }
    }
    let rate = rate(begun);
    end(child)?;
    Ok(rate)
}

async fn into_a_file(command: &str) -> Result<f64, Failure> {
    let file = tempfile::NamedTempFile::new()?;
    let begun = Instant::now();
    let mut child = start(command)?;
    let stdout = child.stdout.take().ok_or("the output is a pipe")?;
    let cat = Command::new("cat")
        .stdin(stdout)
        .stdout(file.as_file().try_clone()?)
        .spawn()?;
    while file.as_file().metadata()?.len() < BYTES {
        tokio::time::sleep(LOOK).await;
    }
    let rate = rate(begun);
    end(child)?;
    end(cat)?;
    Ok(rate)
}

fn start(command: &str) -> std::io::Result<Child> {
    Command::new("bash")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

fn end(mut child: Child) -> std::io::Result<()> {
    child.kill()?;
    child.wait().map(drop)
}
