//! The texts of this crate that a user may see in a message.

/// Head of the names of signals in messages.
pub(crate) const SIGNAL_PREFIX: &str = "BNET_";
/// A signal without a name; its number follows.
pub(crate) const UNKNOWN_SIGNAL: &str = "Unknown sig ";
