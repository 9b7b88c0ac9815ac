//! The backup: what the walk finds becomes the stream that a Storage Daemon stores (reference 04).
//!
//! A walker thread finds entries and hands them over in batches; workers, started when there is something for them, read
//! files, digest, compress and encode; the calling thread sends what they made, strictly in the walk's order. The accurate list, the estimate and the levels of a
//! Verify job that look at the disk live here, too.
//! Not here: the dialogue round the stream, TLS, configuration, and what a walk finds.

mod accurate;
mod batch;
mod data;
mod digests;
mod digests_ahead;
mod emit;
mod estimate;
mod exchange;
mod halt;
mod intake;
mod job;
mod late;
mod long_digests;
mod pace;
mod page_cache;
mod piece;
mod plan;
mod plugins;
mod prepare;
mod protect;
mod run;
mod save;
mod signature_file;
mod source;
mod tail;
#[cfg(test)]
mod tests;
mod texts;
mod tools;
mod verify;
mod verify_disk;
mod worker;
mod workforce;

pub use accurate::{AccurateLevel, AccurateList, ListedFile};
pub use estimate::{Estimate, EstimatePlan, estimate};
pub use pace::HostShare;
pub use plan::{BackupError, BackupPlan, FrameSink, SinkError};
pub use plugins::PluginNames;
pub use protect::Protection;
pub use run::run;
pub use signature_file::SignatureFile;
pub use verify_disk::{VerifyDiskError, VerifyPlan, verify_disk};
