//! What a deployment decides.

use std::{num::NonZeroU64, time::Duration};

use crate::vocabulary::Vocabulary;

/// The largest limit a configuration may set: the largest integer every JSON reader can hold.
pub const MAX_LIMIT: u64 = (1 << 53) - 1;

/// What a deployment decides about its tasks.
#[derive(Debug, Clone)]
pub struct TasksConfig {
    /// How many live tasks one owner may have, and how many all unowned ones together. Default 10.
    pub max_concurrent_tasks_per_owner: NonZeroU64,
    /// How many finished unowned tasks are kept; the oldest beyond it expire. Default 100.
    pub retained_unowned: usize,
    /// How long a disposal waits for work that was asked to end. Default 30 seconds.
    pub dispose_timeout: Duration,
    /// Who may use whose tasks. Default [`Access::OwnAndDescendants`].
    pub access: Access,
    /// The words the model sees. Default [`Vocabulary::Task`].
    pub vocabulary: Vocabulary,
}

/// Who may use whose tasks. Unowned ones are everybody's in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// A session uses its own.
    Own,
    /// A session uses its own, and sees and kills those of the agents that work for it, and for these in turn. What it is
    /// told of them their owners are told all the same.
    #[default]
    OwnAndDescendants,
}

impl Default for TasksConfig {
    fn default() -> Self {
        const TEN: NonZeroU64 = NonZeroU64::MIN.saturating_add(9);
        Self {
            max_concurrent_tasks_per_owner: TEN,
            retained_unowned: 100,
            dispose_timeout: Duration::from_secs(30),
            access: Access::default(),
            vocabulary: Vocabulary::Task,
        }
    }
}
