//! Locks, conditions, atomics, threads and the clock of the crates whose threads work together:
//! [`crate::lock`]'s and those of the standard library. With the feature `models`, which only tests
//! have, a scheduler decides which thread goes on (docs/testing.md, "Models").

#[cfg(feature = "models")]
pub use models::{Condvar, Instant, Mutex, MutexGuard, atomic, thread};
#[cfg(not(feature = "models"))]
pub use {
    crate::lock::{Condvar, Mutex, MutexGuard},
    std::{sync::atomic, thread, time::Instant},
};
