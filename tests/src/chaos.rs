//! Everything at once, at random, from a seed: what only the meeting of many accidents shows.
//!
//! A round is some connections of the real binary, then some of its agents, and then the registry in this process, with
//! what happens to them chosen by a seed. What must hold is looked at all the time and at the end; a round in which
//! something does not says what, and how to run it again. Its choices are the same then. Their moments are the machine's.

mod agent;
mod book;
mod dice;
mod ending;
mod facts;
mod left;
mod lines;
mod player;
mod registry;
mod server;
mod weather;
mod wire;
mod writers;

use std::time::{Duration, Instant};

use dsh_testkit::process;
use tokio::task::JoinSet;

use self::dice::Dice;

/// What a round has found.
#[derive(Debug, Default)]
pub struct Found {
    /// How many tasks there were.
    pub tasks: usize,
    /// What is wrong, in words.
    pub faults: Faults,
}

/// What a round is over. Without a choice it is over all of them, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// `dsh mcp`.
    Servers,
    /// `dsh run` and `dsh acp`.
    Agents,
    /// The registry in this process.
    Registry,
}

type Faults = Vec<String>;

/// How many connections there are at once.
const CONNECTIONS: usize = 4;
/// How many rounds over the registry come after one over the binary: they are short.
const REGISTRIES: u64 = 5;

/// A round over the binary: some connections at once, that have nothing to do with each other.
pub async fn servers(seed: u64) -> Found {
    let mut dice = Dice::new(seed);
    let mut connections = JoinSet::new();
    for letter in ('a'..).take(CONNECTIONS) {
        connections.spawn(server::connection(letter, dice.fork()));
    }
    all(connections).await
}

/// A round over the agents of the binary: lives of each sort at once, that have nothing to do with each other.
pub async fn agents(seed: u64) -> Found {
    let mut dice = Dice::new(seed);
    let mut lives = JoinSet::new();
    for (run, acp) in [('a', 'b'), ('c', 'd')] {
        lives.spawn(agent::session(run, dice.fork()));
        lives.spawn(agent::sessions(acp, dice.fork()));
    }
    all(lives).await
}

/// What all of them have found.
async fn all(mut rounds: JoinSet<Found>) -> Found {
    let mut found = Found::default();
    while let Some(round) = rounds.join_next().await {
        found += round.unwrap_or_else(|error| Found::fault(format!("one panicked: {error}")));
    }
    found
}

/// What this process has that it had not before: descriptors, and children nobody waited for.
async fn left_here(before: usize) -> Faults {
    let began = Instant::now();
    loop {
        let (open, zombies) = (process::open_fds(), process::zombie_children());
        if open.len() <= before && zombies.is_empty() {
            return Vec::new();
        }
        if began.elapsed() > Duration::from_secs(5) {
            return vec![format!(
                "left in this process: zombies {zombies:?}, {before} descriptors became {open:?}"
            )];
        }
        // sleep: the facts are polled.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A round over the registry and its tools in this process.
pub async fn registry(seed: u64) -> Found {
    // It has a runtime of its own.
    let round = tokio::task::spawn_blocking(move || registry::round(seed)).await;
    let mut found = round.unwrap_or_else(|error| Found::fault(format!("the round panicked: {error}")));
    if !found.faults.is_empty() {
        found.faults.insert(0, format!("registry, seed {seed}:"));
    }
    found
}

/// Rounds with one seed after the other, for so long, and at least one. Returns how many there were, and how many tasks in
/// them.
///
/// # Errors
///
/// What was wrong in the first round that was not as it must be, and how to run it again.
pub async fn rounds(first: u64, time: Duration, only: Option<Part>) -> Result<(u64, usize), String> {
    let began = Instant::now();
    let (mut seed, mut tasks) = (first, 0);
    // What the process keeps is there after the first round.
    let mut before = None;
    loop {
        let mut found = Found::default();
        for part in [Part::Servers, Part::Agents, Part::Registry] {
            if only.is_none_or(|only| only == part) {
                found += part.round(seed).await;
            }
        }
        let before = *before.get_or_insert_with(|| process::open_fds().len());
        found.faults.extend(left_here(before).await);
        if !found.faults.is_empty() {
            let faults = found.faults.join("\n");
            let only = only.map_or(String::new(), |only| format!(" --only {}", only.as_str()));
            return Err(format!(
                "{faults}\nagain: cargo xtask chaos --seed {seed} --minutes 0{only}"
            ));
        }
        seed = seed.wrapping_add(1);
        tasks += found.tasks;
        if began.elapsed() >= time {
            return Ok((seed.wrapping_sub(first), tasks));
        }
    }
}

impl Part {
    fn as_str(self) -> &'static str {
        match self {
            Part::Servers => "servers",
            Part::Agents => "agents",
            Part::Registry => "registry",
        }
    }

    async fn round(self, seed: u64) -> Found {
        match self {
            Part::Servers => servers(seed).await,
            Part::Agents => agents(seed).await,
            Part::Registry => {
                let mut found = Found::default();
                for number in 0..REGISTRIES {
                    found += registry(seed.wrapping_mul(REGISTRIES).wrapping_add(number)).await;
                }
                found
            }
        }
    }
}

impl Found {
    fn fault(fault: String) -> Found {
        Found {
            tasks: 0,
            faults: vec![fault],
        }
    }
}

impl std::ops::AddAssign for Found {
    fn add_assign(&mut self, other: Found) {
        self.tasks += other.tasks;
        self.faults.extend(other.faults);
    }
}
