//! From the walk to the sender: batches, pieces, the exchange between the threads, and the threads themselves.

pub(crate) mod batch;
pub(crate) mod exchange;
pub(crate) mod halt;
pub(crate) mod job;
pub(crate) mod pace;
pub(crate) mod piece;
pub(crate) mod sender;
pub(crate) mod tail;
pub(crate) mod threads;
pub(crate) mod worker;
pub(crate) mod workforce;
