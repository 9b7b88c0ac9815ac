//! Locks, conditions, threads and the clock of the look-ahead: those of the standard library. With
//! the feature `models`, which only tests have, a scheduler decides which thread goes on
//! (docs/testing.md, "Models").

#[cfg(feature = "models")]
pub(crate) use models::{Condvar, Instant, Mutex, MutexGuard, thread};
#[cfg(not(feature = "models"))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
    time::Instant,
};
