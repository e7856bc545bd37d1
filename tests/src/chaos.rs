//! Everything at once, at random, from a seed: what only the meeting of many accidents shows.
//!
//! A round is some connections of the real binary, and then the registry in this process, with what happens to them chosen
//! by a seed. What must hold is looked at all the time and at the end; a round in which something does not says what, and
//! how to run it again. Its choices are the same then. Their moments are the machine's.

mod book;
mod dice;
mod facts;
mod lines;
mod player;
mod registry;
mod server;
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
    let mut found = Found::default();
    while let Some(connection) = connections.join_next().await {
        found += connection.unwrap_or_else(|error| Found::fault(format!("a connection panicked: {error}")));
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
pub async fn rounds(first: u64, time: Duration) -> Result<(u64, usize), String> {
    let began = Instant::now();
    let (mut seed, mut tasks) = (first, 0);
    // What the process keeps is there after the first round.
    let mut before = None;
    loop {
        let mut found = servers(seed).await;
        for number in 0..REGISTRIES {
            found += registry(seed.wrapping_mul(REGISTRIES).wrapping_add(number)).await;
        }
        let before = *before.get_or_insert_with(|| process::open_fds().len());
        found.faults.extend(left_here(before).await);
        if !found.faults.is_empty() {
            let faults = found.faults.join("\n");
            return Err(format!(
                "{faults}\nagain: cargo xtask chaos --seed {seed} --minutes 0"
            ));
        }
        seed = seed.wrapping_add(1);
        tasks += found.tasks;
        if began.elapsed() >= time {
            return Ok((seed.wrapping_sub(first), tasks));
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
