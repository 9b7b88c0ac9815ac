//! Threads of a restore, the queues between them, and the clock: those of the standard library and
//! of `crossbeam-channel`. With the feature `models`, which only tests have, a scheduler decides
//! which thread goes on (docs/testing.md, "Models").

#[cfg(not(feature = "models"))]
pub(crate) use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
#[cfg(feature = "models")]
pub(crate) use models::{Instant, Receiver, RecvTimeoutError, Sender, bounded, thread, unbounded};
#[cfg(not(feature = "models"))]
pub(crate) use std::{thread, time::Instant};
