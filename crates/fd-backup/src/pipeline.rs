//! The threads of a backup: workers, and the sender.

pub(crate) mod sender;
pub(crate) mod worker;
pub(crate) mod worker_pool;
