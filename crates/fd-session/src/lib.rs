//! The conversations with the Director and the Storage Daemon: commands and replies as types, and
//! the state machines.
//!
//! - [`command`]: the table of a Director's commands, and their values as types.
//! - [`authenticate`]: the login, for both sides of a hello; [`need`] says how much TLS it takes.
//! - [`storage`], [`open`], [`append`], [`read`]: the dialogue with the Storage Daemon, before and
//!   behind the data.
//! - [`texts`]: every word that is said in them.
//!
//! Sans-IO: frames go in, [`Action`]s come out, time and random numbers are arguments. Nothing here
//! opens a socket, reads a clock or does the work that a command asks for. `examples/director.rs`
//! leads a conversation.

pub mod action;
pub mod append;
pub mod authenticate;
pub mod clock;
pub mod command;
pub mod job_status;
pub mod need;
pub mod open;
pub mod read;
pub mod storage;
pub mod texts;

pub use action::{Action, Input, Machine, TlsMode, TlsRole};
pub use job_status::JobStatus;
pub use need::{KindNeed, Need};
