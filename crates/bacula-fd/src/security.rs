//! What guards this host and its connections: certificates, keys, access rules, bounded places for
//! callers, and files that no other user can exchange.

pub(crate) mod certificate_dates;
pub(crate) mod certificates;
pub(crate) mod hosts_access;
mod hosts_options;
mod ident;
pub(crate) mod own_file;
pub(crate) mod pki_keys;
pub(crate) mod places;
