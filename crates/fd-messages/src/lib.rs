//! Job messages: their types, where each type goes, how a line is composed, and what a message does to its job.
//!
//! Also the handles that a running job shares between its threads: [`Progress`] (counters) and [`CancelToken`].
//! Not here: deciding what is an error. The crates that find one say which [`MessageType`] it is.

mod local;
mod message_type;
mod run;
pub mod texts;

pub use local::{LocalDestinations, syslog};
pub use message_type::MessageType;
pub use run::{CancelToken, JobLog, Progress};
