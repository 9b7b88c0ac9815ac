//! What jobs share: the types of messages, and the handles of one running job.
//!
//! Its threads count in [`Progress`], ask a [`CancelToken`], say messages through a [`JobLog`], and
//! send a Verify job's packets, which go between its messages, through a [`PacketSink`]. The
//! command lines of the programs that they run are split, and their job codes replaced, here.
//!
//! What a peer has said comes into a message as [`Said`], and the name of a file as [`shown`].
//!
//! Not here: how messages are delivered (the program does that), and deciding what is an error: the
//! crates that find one say which [`MessageType`] it is.

mod command_line;
mod message_type;
mod packets;
mod run;
mod said;
mod stages;

pub use command_line::{JobCodes, expand_job_codes, short_job_name, split_arguments};
pub use message_type::{MessageType, Numbering};
pub use packets::{PacketSink, SendError};
pub use run::{CancelToken, JobLog, Progress};
pub use said::{Said, one_line, shown};
pub use stages::{Pressure, Stage, StageTimes};
