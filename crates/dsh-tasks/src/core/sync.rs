//! The core's one lock: std's, or loom's where its models are built.

#[cfg(not(dsh_loom))]
use std::sync::{Mutex as Inner, MutexGuard};

#[cfg(dsh_loom)]
use loom::sync::{Mutex as Inner, MutexGuard};

use std::sync::PoisonError;

/// A mutex that a panic does not poison: nothing under it can be left half changed, since no foreign code runs there.
pub struct Mutex<T>(Inner<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(Inner::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
