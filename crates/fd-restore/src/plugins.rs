//! Plugins in a restore or a Verify job (reference 07 §7.4, §9).

mod access;

pub use access::PluginAccess;
