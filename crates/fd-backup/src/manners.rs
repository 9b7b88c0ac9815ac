//! Manners: what the host suffers while backups run, and how their threads give way.
//!
//! - `host`: counters of the kernel, and what they say about an interval;
//! - `governor`: decides from interval to interval how much is given away, and why;
//! - `budget`: how much a job can give away and still be faster than one thread;
//! - `memory`: what all backups of the daemon have together;
//! - `courtesy`: the daemon's backups, their threads, and the one thread that looks.
//!
//! The threads of a job ask for their share in `pipeline/pace.rs`. They have a low priority from
//! their beginning, so a processor that somebody else needs is given away by the kernel, at once.
//! Those that help the walk have its priority, whatever that is (`fd-walk/src/priority.rs`).
//! The governor adds what priorities can't do: pauses while the disks or the memory are short, or
//! while the processors are and a Storage Daemon on the same host takes part; and it raises the
//! priority again when a job has given away enough.

pub(crate) mod budget;
pub(crate) mod courtesy;
pub(crate) mod governor;
pub(crate) mod host;
pub(crate) mod memory;
