//! When a failed request is sent again.

use std::time::Duration;

use crate::{ModelError, Retry};

/// When a failed request is sent again. Pure: it is told how much time has passed.
///
/// Waits are 0.5 s, 1 s, 2 s, 4 s, each made up to a quarter shorter by `jitter`, so that many clients do not
/// come back together; a provider's `Retry-After` is respected, but never waited for longer than
/// [`MAX_RETRY_AFTER`](Self::MAX_RETRY_AFTER).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is sent at most, the first time included.
    pub max_tries: u32,
    /// After how long it is given up on, time that the provider asked to wait not counted.
    pub max_elapsed: Duration,
}

impl Default for RetryPolicy {
    /// 5 tries within 60 s.
    fn default() -> Self {
        Self {
            max_tries: 5,
            max_elapsed: Duration::from_secs(60),
        }
    }
}

/// What is known of a request that has failed.
#[derive(Debug, Clone, Copy)]
pub struct Tried {
    /// How often it was sent.
    pub tries: u32,
    /// How long ago it was sent first, less the time that the provider asked to wait.
    pub elapsed: Duration,
    /// A number from 0 to 1, by chance.
    pub jitter: f64,
}

impl RetryPolicy {
    /// The longest wait that a provider can ask for.
    pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

    /// How long to wait before the request is sent again; `None` to give up.
    pub fn again_after(&self, error: &ModelError, tried: Tried) -> Option<Duration> {
        let Retry::Later { after } = error.retry else {
            return None;
        };
        if tried.tries >= self.max_tries {
            return None;
        }
        let doubled = 500_u64.saturating_mul(1 << tried.tries.saturating_sub(1).min(16));
        let shorter = 1.0 - tried.jitter.clamp(0.0, 1.0) / 4.0;
        let backoff = Duration::from_millis(doubled).mul_f64(shorter);
        if tried.elapsed.saturating_add(backoff) > self.max_elapsed {
            return None;
        }
        let asked = after.unwrap_or_default().min(Self::MAX_RETRY_AFTER);
        Some(backoff.max(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(tries: u32, seconds: u64) -> Tried {
        Tried {
            tries,
            elapsed: Duration::from_secs(seconds),
            jitter: 0.0,
        }
    }

    fn after(seconds: u64) -> ModelError {
        ModelError {
            retry: Retry::Later {
                after: Some(Duration::from_secs(seconds)),
            },
            ..ModelError::lasting("RATE_LIMIT", "slow down")
        }
    }

    #[test]
    fn waits_double_until_the_tries_are_spent() {
        let policy = RetryPolicy::default();
        let error = ModelError::passing("SERVER", "down");
        let waits: Vec<_> = (1..=5)
            .map(|tries| policy.again_after(&error, tried(tries, 0)))
            .collect();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits, [ms(500), ms(1000), ms(2000), ms(4000), None]);
    }

    #[test]
    fn chance_makes_a_wait_shorter_by_at_most_a_quarter() {
        let error = ModelError::passing("SERVER", "down");
        let with = |jitter| Tried {
            jitter,
            ..tried(1, 0)
        };
        let policy = RetryPolicy::default();
        let wait = |jitter| policy.again_after(&error, with(jitter));
        assert_eq!(wait(1.0), Some(Duration::from_millis(375)));
        assert_eq!(wait(7.0), wait(1.0));
    }

    #[test]
    fn a_lasting_failure_is_not_tried_again() {
        let error = ModelError::lasting("AUTH", "wrong key");
        assert_eq!(RetryPolicy::default().again_after(&error, tried(1, 0)), None);
    }

    #[test]
    fn the_providers_wish_is_respected_within_bounds() {
        let policy = RetryPolicy::default();
        assert_eq!(
            policy.again_after(&after(7), tried(1, 0)),
            Some(Duration::from_secs(7))
        );
        assert_eq!(
            policy.again_after(&after(3600), tried(1, 0)),
            Some(Duration::from_secs(60))
        );
        assert_eq!(
            policy.again_after(&after(0), tried(1, 0)),
            Some(Duration::from_millis(500))
        );
    }

    #[test]
    fn time_runs_out() {
        let policy = RetryPolicy::default();
        let error = ModelError::passing("CONNECT", "refused");
        assert_eq!(policy.again_after(&error, tried(2, 60)), None);
        assert!(policy.again_after(&error, tried(2, 58)).is_some());
    }
}
