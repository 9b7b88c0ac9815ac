//! The restore: records of a read session in, files out.
//!
//! [`run`] takes the records of one Storage Daemon, from behind `3000 OK data` to the end of the data, and makes of them
//! what the stock daemon would make, with its messages in its order. What differs on purpose: nothing on the volume and
//! no other user can lead a write out of the place that the operator chose (see `tree`), directories keep their recorded
//! times whatever comes after them, and data is compared with the digests on the volume.
//!
//! [`verify`] reads a volume in the same way and compares instead of writing.
//!
//! Not here: the conversation with the Director and the Storage Daemon, and the status of the job.

mod create;
mod data;
mod digest_check;
mod digest_worker;
mod encryption;
mod entry;
mod late_digests;
mod long_files;
mod output_file;
mod output_names;
mod plan;
mod records;
mod regex_where;
mod report;
mod round;
mod source;
mod texts;
mod tree;
pub mod verify;
mod win32;

pub use output_names::OutputNames;
pub use plan::{Replace, RestorePlan};
pub use records::{End, SequenceError};
pub use regex_where::{CompileName, NameRegex, RegexWhere};
pub use report::QueuedMessage;
pub use round::{Outcome, RestoreState, run};
pub use source::{FrameMemory, KeptFrame, RecordSource, SourceError};
