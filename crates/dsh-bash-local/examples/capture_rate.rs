//! How fast output is captured, as ratios to a plain reader of the same pipe that throws away what it reads, 64 KiB at a
//! time. Interleaved rounds of one kind of output after another.
//!
//! `cargo run --release -p dsh-bash-local --example capture_rate -- [ROUNDS] [MEGABYTES] [KIND]`; the last argument
//! leaves out every kind of output but those that contain it.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dsh_bash::{BashExecutor, BashRequest, EndReason};
use dsh_bash_local::{LocalBash, LocalBashConfig};
use dsh_scope::Scope;
use dsh_subprocess::{GuardConfig, Launcher};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the plain reader reads at once, and what the writers here write at once.
const BLOCK: usize = 64 * 1024;

fn main() -> Result<(), Failure> {
    dsh_subprocess::guard_entry();
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("write") {
        return write(arguments.next().as_deref() == Some("line"));
    }
    let rounds = first.map_or(Ok(5), |rounds| rounds.parse::<usize>())?;
    let megabytes = arguments.next().map_or(Ok(5_000), |size| size.parse::<u64>())?;
    let only = arguments.next().unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(measure(rounds, megabytes * 1_000_000, &only))
}

/// Writes for as long as somebody reads: lines of 80 bytes, or one that never ends.
fn write(one_line: bool) -> Result<(), Failure> {
    let mut block = vec![b'x'; BLOCK];
    if !one_line {
        block
            .iter_mut()
            .skip(79)
            .step_by(80)
            .for_each(|byte| *byte = b'\n');
    }
    let mut stdout = std::fs::File::from(std::os::fd::AsFd::as_fd(&std::io::stdout()).try_clone_to_owned()?);
    while stdout.write_all(&block).is_ok() {}
    Ok(())
}

/// Who reads.
enum Reader {
    Plain,
    Executor(LocalBash),
}

async fn measure(rounds: usize, bytes: u64, only: &str) -> Result<(), Failure> {
    let scope = Scope::root("capture rate");
    let launcher = Launcher::guarded(GuardConfig::own_program())?;
    let executor = |max_spill_bytes| {
        let config = LocalBashConfig {
            max_spill_bytes,
            max_total_spill_bytes: 1e12,
            ..LocalBashConfig::default()
        };
        LocalBash::with_launcher(&scope, config, launcher.clone()).map(Reader::Executor)
    };
    let readers = [
        ("plain reader", Reader::Plain),
        ("executor, no file", executor(1.0)?),
        (
            "executor, file as configured",
            executor(LocalBashConfig::default().max_spill_bytes)?,
        ),
    ];
    let program = std::env::current_exe()?;
    let program = program.display();
    let kinds = [
        ("blocks of 64 KiB", format!("exec '{program}' write")),
        ("one endless line", format!("exec '{program}' write line")),
        ("yes", "exec yes".to_owned()),
    ];
    for (kind, command) in kinds.iter().filter(|(kind, _)| kind.contains(only)) {
        let mut samples = [const { Vec::new() }; 3];
        for round in 0..rounds {
            for turn in 0..readers.len() {
                let index = (round + turn) % readers.len();
                let before = cpu_time()?;
                let took = time(&readers[index].1, command, bytes).await?;
                samples[index].push((took, cpu_time()?.saturating_sub(before)));
            }
        }
        report(kind, bytes, &readers, samples);
    }
    scope.close().await?;
    Ok(())
}

/// Medians; the ratio is that of the rounds, each to the plain reader of its own round.
fn report(kind: &str, bytes: u64, readers: &[(&str, Reader); 3], samples: [Vec<(Duration, Duration)>; 3]) {
    println!("{kind}, {} MB", bytes / 1_000_000);
    let plain = samples[0].clone();
    for ((name, _), sample) in readers.iter().zip(samples) {
        let ratios = sample
            .iter()
            .zip(&plain)
            .map(|(own, plain)| plain.0.as_secs_f64() / own.0.as_secs_f64());
        let [low, ratio, high] = quartiles(ratios);
        let [_, took, _] = quartiles(sample.iter().map(|(took, _)| took.as_secs_f64()));
        let [_, cpu, _] = quartiles(sample.iter().map(|(_, cpu)| cpu.as_secs_f64()));
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let rate = bytes as f64 / 1e9 / took;
        println!("  {name:<30} {rate:>5.2} GB/s  {ratio:.2} x ({low:.2} to {high:.2})  {cpu:.3} s of CPU");
    }
}

fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// What this process, without its children, has taken of the processors.
fn cpu_time() -> Result<Duration, Failure> {
    let mut sum = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        // A thread that is just gone took nothing that matters here.
        let stat = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        sum += stat.split(' ').next().unwrap_or_default().parse().unwrap_or(0);
    }
    Ok(Duration::from_nanos(sum))
}

/// From the start of the command until so many bytes of it were read.
async fn time(reader: &Reader, command: &str, bytes: u64) -> Result<Duration, Failure> {
    let start = Instant::now();
    match reader {
        Reader::Plain => {
            let command = command.to_owned();
            tokio::task::spawn_blocking(move || plain(&command, bytes)).await??;
        }
        Reader::Executor(bash) => {
            let request = BashRequest {
                workdir: Some(Path::new("/").into()),
                ..BashRequest::new(command)
            };
            let process = bash.start(&bash.resolve(request)?)?;
            while process.output().len() < bytes {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let took = start.elapsed();
            process.terminate(EndReason::Asked);
            process.ended().await;
            return Ok(took);
        }
    }
    Ok(start.elapsed())
}

fn plain(command: &str, bytes: u64) -> std::io::Result<()> {
    let mut child = Command::new("bash")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdout) = child.stdout.take() {
        let mut buffer = vec![0; BLOCK];
        let mut read = 0;
        while read < bytes {
            match stdout.read(&mut buffer)? {
                0 => break,
                count => read += count as u64,
            }
        }
    }
    child.kill()?;
    child.wait().map(drop)
}
