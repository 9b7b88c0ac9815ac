//! The queues between threads of a restore: those of `crossbeam-channel`. With the feature
//! `models`, which only tests have, those of the model, as [`fd_os::sync`].

#[cfg(not(feature = "models"))]
pub(crate) use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
#[cfg(feature = "models")]
pub(crate) use models::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
