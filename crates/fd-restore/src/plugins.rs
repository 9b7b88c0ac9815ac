//! Plugins in a restore or a Verify job (reference 07 §7.4, §9).

mod access;
mod current;
mod host;
mod section;

pub use access::PluginAccess;
pub(crate) use access::told_of;
pub(crate) use current::{CurrentPlugin, MetadataAnswer};
pub(crate) use section::Section;
