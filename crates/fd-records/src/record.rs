//! The records of a volume and their headers, encoded and decoded.

pub(crate) mod acl;
pub(crate) mod attributes;
pub(crate) mod header;
pub(crate) mod lstat;
pub(crate) mod plugin_name;
pub mod xattr;
