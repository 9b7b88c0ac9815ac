//! A Director's connection from its hello to its end: the command loop of reference 02.
//!
//! One thread serves it and owns its channel. While a job runs, the job has a thread of its own and
//! this one passes on its messages and keeps the connection alive.
//!
//! `greet` logs a Director in. `commands` reads its commands and names the handler of each; the
//! handlers stand in the other files, by subject. `conversation` is what they all work with.

mod answers;
mod asked;
mod commands;
mod control;
mod conversation;
mod diagnostics;
mod estimate;
mod fileset;
mod greet;
mod jobs;
mod level;
mod network_test;
mod plugin_calls;
mod plugins;
mod proxy;
mod scripts;
mod snapshots;
mod status;
mod storage;
mod verify;

pub(crate) use greet::{serve, serve_channel};
