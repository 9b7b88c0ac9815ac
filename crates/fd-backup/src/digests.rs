//! Digests of an entry's data, and what PKI adds to it.

pub(crate) mod ahead;
pub(crate) mod batched;
pub(crate) mod choice;
pub(crate) mod protect;
pub(crate) mod signature_file;
pub(crate) mod streamed;
