//! Job messages: their types, where each type goes, how a line is composed, and what a message does to its job.
//!
//! Also the handles that a running job shares between its threads: [`Progress`] (counters, and where the time goes) and
//! [`CancelToken`], and the way of a Verify job's packets, which go between its messages ([`PacketSink`]).
//! Not here: deciding what is an error. The crates that find one say which [`MessageType`] it is.

mod courier;
mod local;
mod message_type;
pub mod own_file;
mod packets;
mod run;
mod stages;
pub mod texts;

pub use local::{Expand, LocalDestinations, syslog};
pub use message_type::MessageType;
pub use packets::{PacketSink, SendError};
pub use run::{CancelToken, JobLog, Progress};
pub use stages::{Stage, StageTimes};
