//! The texts of `status` and `.status` (reference 02 §11). They show snapshots and never wait for a job.

mod plain;
mod short;

pub(crate) use plain::plain;
pub(crate) use short::{current, last, terminated};
