//! The room that all spill files of one directory share.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number of bytes, of which every file reserves its share before it writes: so the files together never take more,
/// whoever writes at the same time.
#[derive(Debug)]
pub(crate) struct Room {
    free: AtomicU64,
}

impl Room {
    pub(crate) fn new(bytes: u64) -> Self {
        let free = AtomicU64::new(bytes);
        Self { free }
    }

    /// Takes `wanted` bytes, or what is left if that is less; returns how many it took.
    pub(crate) fn reserve(&self, wanted: u64) -> u64 {
        let take = |free: u64| Some(free - free.min(wanted));
        // The count alone is shared, nothing is published with it.
        let before = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        before.unwrap_or(0).min(wanted)
    }

    /// Gives back what was reserved.
    pub(crate) fn release(&self, bytes: u64) {
        self.free.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
