//! Rounds: everything that is compared is measured once in each of them.

use std::time::{Duration, Instant};

use crate::Failure;

/// Whether the first round counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// One more round comes first and is thrown away: caches are filled, guards are made, pages are there.
    Warmed,
    /// Every round counts: each is so long that its first moments do not matter.
    Cold,
}

/// Measures `N` ways to do the same, each once per round, and returns the samples of each.
///
/// Whoever comes first in a round pays for what the last one left behind, so the first one changes.
pub(crate) async fn in_turns<const N: usize>(
    rounds: usize,
    start: Start,
    mut measure: impl AsyncFnMut(usize) -> Result<f64, Failure>,
) -> Result<[Vec<f64>; N], Failure> {
    let mut samples = [const { Vec::new() }; N];
    let skipped = usize::from(start == Start::Warmed);
    for round in 0..rounds + skipped {
        for turn in 0..N {
            let way = (round + turn) % N;
            let sample = measure(way).await?;
            if round >= skipped
                && let Some(samples) = samples.get_mut(way)
            {
                samples.push(sample);
            }
        }
    }
    Ok(samples)
}

/// Seconds that something took.
pub(crate) async fn timed<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<f64, Failure> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Seconds that one of `count` calls took.
#[expect(clippy::cast_precision_loss, reason = "counts here have few digits")]
pub(crate) fn each(count: usize, took: Duration) -> f64 {
    took.as_secs_f64() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn order(rounds: usize, start: Start) -> (Vec<usize>, [usize; 3]) {
        let mut order = Vec::new();
        let samples = in_turns::<3>(rounds, start, async |way| {
            order.push(way);
            Ok(0.0)
        });
        let samples = samples.await.expect("nothing fails");
        (order, samples.map(|samples| samples.len()))
    }

    #[tokio::test]
    async fn everybody_is_first_in_turn() {
        let (order, counts) = order(3, Start::Cold).await;
        assert_eq!(order, [0, 1, 2, 1, 2, 0, 2, 0, 1]);
        assert_eq!(counts, [3; 3]);
    }

    #[tokio::test]
    async fn a_warm_up_is_not_counted() {
        let (order, counts) = order(2, Start::Warmed).await;
        assert_eq!(order.len(), 9);
        assert_eq!(counts, [2; 3]);
    }
}
