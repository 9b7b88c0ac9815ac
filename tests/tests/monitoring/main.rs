//! What an administrator sees of the daemon: `--diagnose`, the metrics, and the alerts and
//! dashboards made of them. Only ours has them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what helps a test fails the test, like the test itself"
)]

mod address;
mod check;
mod diagnose;
mod icinga;
mod metrics;
mod prometheus;
mod watched;
mod zabbix;
