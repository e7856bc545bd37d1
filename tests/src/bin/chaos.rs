//! `chaos --seed N --minutes M`: what `cargo xtask chaos` runs.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use tests::chaos::Part;

/// Everything at once, at random.
#[derive(Parser)]
struct Cli {
    /// Where the choices come from; the time, if there is none.
    #[arg(long)]
    seed: Option<u64>,
    /// For how long new rounds begin. With 0 there is one.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// What the rounds are over; everything, without it.
    #[arg(long)]
    only: Option<Part>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { seed, minutes, only } = Cli::parse();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = seed.unwrap_or(now.as_secs());
    println!("seed {seed}");
    match tests::chaos::rounds(seed, Duration::from_secs_f64(minutes * 60.0), only).await {
        Ok((rounds, tasks)) => {
            println!("{rounds} rounds, {tasks} tasks, and all is well");
            ExitCode::SUCCESS
        }
        Err(faults) => {
            eprintln!("{faults}");
            ExitCode::FAILURE
        }
    }
}
