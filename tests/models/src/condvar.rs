//! A condition whose limited waits end when the model's clock says so.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::MutexGuard;
use crate::execution::{Timed, now};

/// A condition with the interface of `fd_os::lock`.
#[derive(Default, Debug)]
pub struct Condvar(Arc<shuttle::sync::Condvar>);

impl Condvar {
    /// One that nobody waits for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until it is notified.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is notified or time passes. Returns whether that time is over, too.
    pub fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, limit: Duration) -> (MutexGuard<'a, T>, bool) {
        let end = now().saturating_add(limit);
        let timed = Timed::new(&self.0);
        let guard = self.wait(guard);
        drop(timed);
        (guard, now() >= end)
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
