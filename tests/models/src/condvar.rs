//! A condition whose limited waits end when the model's clock says so.

use std::sync::{Arc, LockResult, PoisonError};
use std::time::Duration;

use shuttle::sync::MutexGuard;

use crate::execution::{Timed, now};

/// As that of the standard library.
#[derive(Default, Debug)]
pub struct Condvar(Arc<shuttle::sync::Condvar>);

/// Whether the time of a wait was over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it was.
    pub const fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// One that nobody waits for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until it is notified.
    ///
    /// # Errors
    /// A thread has panicked with the lock.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(guard)
    }

    /// Waits until it is notified or time passes.
    ///
    /// # Errors
    /// A thread has panicked with the lock.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let end = now().saturating_add(limit);
        let timed = Timed::new(&self.0);
        let waited = self.0.wait(guard);
        drop(timed);
        let result = WaitTimeoutResult(now() >= end);
        match waited {
            Ok(guard) => Ok((guard, result)),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), result))),
        }
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
