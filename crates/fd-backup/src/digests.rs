//! Digests of an entry's data, and what PKI adds to it.

pub(crate) mod ahead;
pub(crate) mod chains;
pub(crate) mod digesters;
pub(crate) mod late;
pub(crate) mod long;
pub(crate) mod protect;
pub(crate) mod signature_file;
pub(crate) mod ways;
