//! The texts of `status` and `.status` (reference 02 §11). They show snapshots and never wait for a
//! job.

mod api;
mod output;
mod plain;
mod short;
mod statistics;

pub(crate) use api::{activity, header, resources, running, terminated as api_terminated};
pub(crate) use plain::{plain, with_suffix};
pub(crate) use short::{current, last, terminated};
pub(crate) use statistics::{plain as plain_statistics, statistics};
