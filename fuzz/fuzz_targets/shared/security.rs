//! Files of the program, which is no library, where they look for each other. They are formatted
//! where they are at home.

#[path = "../../../crates/bacula-fd/src/security/hosts_access.rs"]
#[rustfmt::skip]
pub(crate) mod hosts_access;
#[path = "../../../crates/bacula-fd/src/security/hosts_options.rs"]
#[rustfmt::skip]
mod hosts_options;
#[path = "../../../crates/bacula-fd/src/security/ident.rs"]
#[rustfmt::skip]
pub(crate) mod ident;
#[path = "../../../crates/bacula-fd/src/security/own_file.rs"]
#[rustfmt::skip]
pub(crate) mod own_file;
