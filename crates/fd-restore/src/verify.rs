//! The verify levels that read a volume: `volume` ([`volume()`], for the Director to compare with
//! the catalog) and `data` ([`data()`], the files' data against their digests and sizes).
//!
//! Not here: the levels that walk the disk, which are made like a backup, and the Director's
//! comparison.

mod checks;
mod data;
mod job;
mod scan;
mod volume;

pub use checks::Checks;
pub use data::{CatalogFile, CatalogList, data};
pub use job::{VerifyError, VerifyJob, VerifyOutcome};
pub use volume::volume;
