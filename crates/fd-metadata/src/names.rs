//! A cache of the names and numbers of this machine's users and groups.
//!
//! A directory service may take milliseconds for an answer, and a job needs the same few owners
//! again and again.

use std::collections::HashMap;

use fd_os::identities;
use fd_records::{Identities, Names};
use nix::errno::Errno;

/// How many answers of each kind are kept; a job with more owners starts over.
const LIMIT: usize = 8192;
/// No name is longer, in bytes: the C library's limit is 256. Volumes may have others, which must
/// not be kept.
const LONGEST: usize = 1024;

/// Answers of the system's user database.
#[derive(Default, Debug)]
pub struct NameCache {
    users: HashMap<u32, Option<Box<[u8]>>>,
    groups: HashMap<u32, Option<Box<[u8]>>>,
    user_numbers: HashMap<Box<[u8]>, Option<u32>>,
    group_numbers: HashMap<Box<[u8]>, Option<u32>>,
}

impl NameCache {
    /// A cache without answers.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Names for NameCache {
    fn user_name(&mut self, uid: u32) -> Option<&[u8]> {
        name_of(&mut self.users, uid, || identities::user_name(uid))
    }

    fn group_name(&mut self, gid: u32) -> Option<&[u8]> {
        name_of(&mut self.groups, gid, || identities::group_name(gid))
    }
}

impl Identities for NameCache {
    fn user_number(&mut self, name: &[u8]) -> Option<u32> {
        number_of(&mut self.user_numbers, name, identities::user_number)
    }

    fn group_number(&mut self, name: &[u8]) -> Option<u32> {
        number_of(&mut self.group_numbers, name, identities::group_number)
    }
}

fn name_of(
    known: &mut HashMap<u32, Option<Box<[u8]>>>,
    number: u32,
    ask: impl FnOnce() -> Result<Option<Vec<u8>>, Errno>,
) -> Option<&[u8]> {
    if known.len() >= LIMIT && !known.contains_key(&number) {
        known.clear();
    }
    let name = known.entry(number).or_insert_with(|| {
        let name = ask().ok().flatten().filter(|name| !name.is_empty());
        name.map(Vec::into_boxed_slice)
    });
    name.as_deref()
}

fn number_of(
    known: &mut HashMap<Box<[u8]>, Option<u32>>,
    name: &[u8],
    ask: impl FnOnce(&[u8]) -> Result<Option<u32>, Errno>,
) -> Option<u32> {
    if name.len() > LONGEST {
        return None;
    }
    if let Some(number) = known.get(name) {
        return *number;
    }
    if known.len() >= LIMIT {
        known.clear();
    }
    let number = ask(name).ok().flatten();
    known.insert(name.into(), number);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_name_and_a_number() {
        let mut names = NameCache::new();
        for _ in 0..2 {
            assert_eq!(names.user_name(0), Some(&b"root"[..]));
            assert_eq!(names.group_name(0), Some(&b"root"[..]));
            assert_eq!(names.user_number(b"root"), Some(0));
            assert_eq!(names.group_number(b"root"), Some(0));
        }
        assert_eq!(names.users.len(), 1);
    }

    #[test]
    fn unknown_users_and_groups_have_none() {
        let mut names = NameCache::new();
        assert_eq!(names.user_name(4_000_000_000), None);
        assert_eq!(names.user_number(b"no such user \xff"), None);
        assert_eq!(names.group_number(b"no-such-group-here"), None);
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut known = HashMap::new();
        for number in 0..20_000 {
            name_of(&mut known, number, || Ok(None));
            assert!(known.len() <= LIMIT);
        }
        let mut known = HashMap::new();
        for number in 0..20_000_u32 {
            number_of(&mut known, &number.to_be_bytes(), |_| Ok(None));
            assert!(known.len() <= LIMIT);
        }
        known.clear();
        assert_eq!(number_of(&mut known, "a".repeat(1_000_000).as_bytes(), |_| Ok(Some(1))), None);
        assert!(known.is_empty());
    }
}
