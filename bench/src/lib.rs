//! What `bench` is made of: trees, cells, watching connections, samples, statistics, reports.
//!
//! It judges the program and uses nothing of it.

pub mod beside;
pub mod bpipe;
pub mod bucket;
pub mod canvas;
pub mod cell;
pub mod changing;
pub mod connection;
pub mod far;
pub mod figures;
pub mod floor;
pub mod group;
pub mod hot_set;
pub mod mounted;
pub mod order;
pub mod origin;
pub mod paper;
pub mod places;
pub mod plot;
pub mod plugin_host;
pub mod problems;
mod processes;
mod programs;
pub mod report;
pub mod restored;
pub mod s3;
pub mod sample;
pub mod scan;
pub mod stage;
pub mod statistics;
pub mod surroundings;
pub mod target;
pub mod together;
pub mod tree;
mod volumes;
