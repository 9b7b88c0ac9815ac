//! What guards this host and its connections: certificates, keys, access rules, bounded places for callers.

pub(crate) mod certificates;
pub(crate) mod hosts_access;
pub(crate) mod pki_keys;
pub(crate) mod places;
