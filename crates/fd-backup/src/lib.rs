//! The backup: turns what the walk finds into the stream that a Storage Daemon stores (reference
//! 04). Estimates and the levels of Verify jobs that read the disk are here, too.
//!
//! From the top, each uses lower ones only:
//!
//! - `jobs`: what a caller can run.
//! - `pipeline`: the threads of a backup. A walker collects entries in batches; workers read,
//!   digest, compress and encode; the calling thread sends the result, strictly in the walk's
//!   order.
//! - `plugins`: what plugins save.
//! - `file`: one entry on its way into the stream.
//! - `shared`: what all threads of a backup share, from its plan to its state.
//! - `digests`: digests of data, and what PKI adds to it.
//! - `source`: opens and reads what has data.
//! - `exchange`: what walker, workers and sender exchange, in strict order.
//! - `manners`: what the host suffers meanwhile, and how those threads give way.
//! - `accurate`: the catalog's files, for accurate jobs.
//!
//! Not here: the dialogue around the stream, TLS, configuration, and what a walk finds.

mod accurate;
mod digests;
mod exchange;
mod file;
mod jobs;
mod manners;
mod pipeline;
mod plugins;
mod shared;
mod source;
#[cfg(test)]
mod tests;
mod texts;

pub use accurate::{AccurateLevel, AccurateList, ListedFile};
pub use digests::protect::Protection;
pub use digests::signature_file::SignatureFile;
pub use jobs::backup::run;
pub use jobs::estimate::{EstimatePlan, EstimateTotals, estimate};
pub use jobs::verify_disk::{VerifyDiskError, VerifyPlan, verify_disk};
pub use manners::budget::Manners;
pub use manners::courtesy::Courtesy;
pub use manners::memory::{ListMemory, MemoryBudget, MemoryShare};
pub use shared::changes::LateIncludes;
pub use shared::plan::{BackupError, BackupPlan, FrameSink, SinkError};
pub use texts::change_refused;
