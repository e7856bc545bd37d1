//! Everything at once, at random, from a seed: what only the meeting of many accidents shows.
//!
//! A round is some connections of the real binary, and then the registry in this process, with what happens to them chosen
//! by a seed. What must hold is looked at all the time and at the end; a round in which something does not says what, and
//! how to run it again. Its choices are the same then. Their moments are the machine's.

mod book;
mod dice;
mod facts;
mod lines;
mod server;
mod wire;
mod writers;

use std::time::Duration;

use tokio::task::JoinSet;

use self::dice::Dice;

/// What is wrong, in words. Nothing, if all is well.
pub type Faults = Vec<String>;

/// How many connections there are at once.
const CONNECTIONS: usize = 3;

/// A round over the binary: some connections at once, that have nothing to do with each other.
pub async fn servers(seed: u64) -> Faults {
    let mut dice = Dice::new(seed);
    let mut connections = JoinSet::new();
    for letter in ('a'..).take(CONNECTIONS) {
        connections.spawn(server::connection(letter, dice.fork()));
    }
    let mut faults = Vec::new();
    while let Some(connection) = connections.join_next().await {
        match connection {
            Ok(found) => faults.extend(found),
            Err(error) => faults.push(format!("a connection panicked: {error}")),
        }
    }
    faults
}

/// Rounds with one seed after the other, for so long, and at least one.
///
/// # Errors
///
/// What was wrong in the first round that was not as it must be, and how to run it again.
pub async fn rounds(first: u64, time: Duration) -> Result<u64, String> {
    let began = std::time::Instant::now();
    let mut seed = first;
    loop {
        let faults = servers(seed).await;
        if !faults.is_empty() {
            let faults = faults.join("\n");
            return Err(format!("{faults}\nagain: cargo xtask chaos --seed {seed} --minutes 0"));
        }
        seed = seed.wrapping_add(1);
        if began.elapsed() >= time {
            return Ok(seed.wrapping_sub(first));
        }
    }
}
