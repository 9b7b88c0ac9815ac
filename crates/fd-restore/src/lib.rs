//! The restore: records of a read session in, files out.
//!
//! [`run`] takes the records of one Storage Daemon, from `3000 OK data` to the end of the data, and
//! restores what the stock daemon would restore, with its messages in its order. Three things
//! differ on purpose: neither the volume nor another user can redirect a write out of the place
//! that the operator chose (see `tree`), directories keep their recorded times in any order of
//! records, and data is compared with the digests on the volume.
//!
//! [`verify`] reads a volume in the same way and compares instead of writing.
//!
//! What is where:
//!
//! - `plan`: what a restore is asked to do; `names`: under which name a file is restored.
//! - `stream`: what comes from the Storage Daemon, record by record.
//! - `round`: the records of one Storage Daemon in their order, and what is applied when.
//! - `file`: what is decided about one file, how it is made, and how its data gets into it;
//!   `created`: what has become of it then; `output_file`: the open file.
//! - `overlap`: small files that are made at the same time, where the storage answers late.
//! - `tree`: the directories on the way to a file, reached through handles.
//! - `digests`: digests of what was restored, for digest records and signatures.
//! - `plugins`: files that a plugin has made.
//! - `report`: the order of messages; `texts`: their words.
//!
//! Not here: the conversation with the Director and the Storage Daemon, and the status of the job.

mod created;
mod digests;
mod file;
mod names;
mod output_file;
mod overlap;
mod plan;
mod plugins;
mod report;
mod round;
mod stream;
mod sync;
mod texts;
mod tree;
pub mod verify;

pub use names::{CompileName, NameRegex, OutputNames, RegexWhere, Undecided};
pub use plan::RestorePlan;
pub use plugins::PluginAccess;
pub use report::QueuedMessage;
pub use round::{Outcome, RestoreState, run};
pub use stream::{End, RecordSource, SequenceError, SourceError};
pub use tree::LinkRule;
