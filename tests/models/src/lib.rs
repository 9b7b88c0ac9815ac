//! What model checks run on. A crate with the feature `models` takes its locks, conditions and
//! threads from here instead of the standard library; then a *scheduler* decides at each of them
//! which thread goes on, and a test runs the same code in thousands of orders.
//!
//! There is one clock, which stands still until the model says that time passes ([`pass`]). So a
//! thread that waits for ever is found: nothing can go on then, and the scheduler says so.
//!
//! Only for tests: no program has the feature. Not here: what a model does and what has to hold,
//! which stands in the tests of each crate.

mod channel;
mod condvar;
mod execution;
mod explore;
mod instant;
mod mutex;
pub mod thread;

pub use channel::{Receiver, RecvTimeoutError, SendError, Sender, bounded, unbounded};
pub use condvar::Condvar;
pub use execution::{allow_threads, at_step, pass, running};
pub use explore::{Count, explore, pick};
pub use instant::Instant;
pub use mutex::{Mutex, MutexGuard};
pub use shuttle::sync::atomic;
