//! The threads of a backup, from the walk to the sender, and what they exchange.

pub(crate) mod batch;
pub(crate) mod depth;
pub(crate) mod exchange;
pub(crate) mod halt;
pub(crate) mod idle;
pub(crate) mod job;
pub(crate) mod meter;
pub(crate) mod pace;
pub(crate) mod piece;
pub(crate) mod sender;
pub(crate) mod tail;
pub(crate) mod threads;
pub(crate) mod worker;
pub(crate) mod worker_pool;
