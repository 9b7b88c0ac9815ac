//! The daemon's numbers: for `statistics`, for collectors, and for Prometheus.

pub(crate) mod check;
pub(crate) mod collectors;
mod exposition;
mod process;
pub(crate) mod prometheus;
pub(crate) mod stock;
