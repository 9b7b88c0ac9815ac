//! Locks, threads and the clock of a job's own thread: those of the standard library. With the
//! feature `models`, which only tests have, a scheduler decides which thread goes on
//! (docs/testing.md, "Models").

#[cfg(feature = "models")]
pub(crate) use models::{Instant, Mutex, MutexGuard, atomic, thread};
#[cfg(not(feature = "models"))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard, atomic},
    thread,
    time::Instant,
};
