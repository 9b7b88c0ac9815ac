//! The records of a volume and their headers, encoded and decoded.

pub(crate) mod acl;
pub(crate) mod attributes;
pub(crate) mod file_event;
pub(crate) mod header;
pub(crate) mod lstat;
pub(crate) mod plugin_metadata;
pub(crate) mod plugin_name;
pub(crate) mod plugin_object;
pub(crate) mod restore_object;
pub mod xattr;
