//! Names of users and groups for the texts of this crate.
//!
//! The crate does not ask the system: the caller answers, usually from a cache.

/// Names by number.
pub trait Names {
    /// The name of this user; `None` if it has none, or that can't be found out: then the number is
    /// written.
    fn user_name(&mut self, uid: u32) -> Option<&[u8]>;
    /// The name of this group.
    fn group_name(&mut self, gid: u32) -> Option<&[u8]>;
}

/// Numbers by name.
pub trait Identities {
    /// The number of the user of this name; `None` if there is none, or that can't be found out.
    fn user_number(&mut self, name: &[u8]) -> Option<u32>;
    /// The number of the group of this name.
    fn group_number(&mut self, name: &[u8]) -> Option<u32>;
}
