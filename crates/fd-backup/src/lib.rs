//! The backup: what the walk finds becomes the stream that a Storage Daemon stores (reference 04).
//!
//! A walker thread finds entries and hands them over in batches; workers, started when there is something for them, read
//! files, digest, compress and encode; the calling thread sends what they made, strictly in the walk's order. The accurate list, the estimate and the levels of a
//! Verify job that look at the disk live here, too.
//! Not here: the dialogue round the stream, TLS, configuration, and what a walk finds.

mod accurate;
mod digests;
mod file;
mod jobs;
mod pipeline;
#[cfg(test)]
mod tests;
mod texts;

pub use accurate::{AccurateLevel, AccurateList, ListedFile};
pub use digests::protect::Protection;
pub use digests::signature_file::SignatureFile;
pub use file::plugins::PluginNames;
pub use jobs::backup::run;
pub use jobs::estimate::{Estimate, EstimatePlan, estimate};
pub use jobs::plan::{BackupError, BackupPlan, FrameSink, SinkError};
pub use jobs::verify_disk::{VerifyDiskError, VerifyPlan, verify_disk};
pub use pipeline::pace::HostShare;
