//! Criterion benches and the harness that sets ferrofd beside the stock File Daemon will live here.
//!
//! Nothing is measured here yet. What exists is the table at the end of `make demo`.
