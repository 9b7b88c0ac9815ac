//! The texts of `status` and `.status` (reference 02 §11). They show snapshots and never wait for a job.

mod plain;
mod short;

pub use plain::plain;
pub use short::{current, last, terminated};
