//! The backup: turns what the walk finds into the stream that a Storage Daemon stores (reference
//! 04). Estimates and the levels of Verify jobs that read the disk are here, too.
//!
//! - `jobs`: what a caller can run, with its arguments and errors.
//! - `pipeline`: the threads of a backup. A walker collects entries in batches; workers read,
//!   digest, compress and encode; the calling thread sends the result, strictly in the walk's
//!   order.
//! - `manners`: what the host suffers meanwhile, and how those threads give way.
//! - `file`: one entry on its way into the stream.
//! - `digests`: digests of its data, and what PKI adds to it.
//! - `plugins`: what plugins save.
//! - `accurate`: the catalog's files, for accurate jobs.
//!
//! Not here: the dialogue around the stream, TLS, configuration, and what a walk finds.

mod accurate;
mod digests;
mod file;
mod jobs;
mod manners;
mod pipeline;
mod plugins;
#[cfg(test)]
mod tests;
mod texts;

pub use accurate::{AccurateLevel, AccurateList, ListedFile};
pub use digests::protect::Protection;
pub use digests::signature_file::SignatureFile;
pub use jobs::backup::run;
pub use jobs::estimate::{EstimatePlan, EstimateTotals, estimate};
pub use jobs::plan::{BackupError, BackupPlan, FrameSink, SinkError};
pub use jobs::verify_disk::{VerifyDiskError, VerifyPlan, verify_disk};
pub use manners::budget::Manners;
pub use manners::courtesy::Courtesy;
pub use manners::memory::{MemoryBudget, MemoryShare};
pub use plugins::changes::LateIncludes;
