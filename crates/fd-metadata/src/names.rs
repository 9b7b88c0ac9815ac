//! A cache of the names and numbers of this machine's users and groups.
//!
//! A directory service may take milliseconds for an answer, and a job needs the same few owners
//! again and again.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use fd_os::identities;
use fd_records::{Identities, Names};
use nix::errno::Errno;

/// How many answers of each kind are kept; a job with more owners starts over.
const LIMIT: usize = 8192;
/// No name is longer, in bytes: the C library's limit is 256. Volumes may have others, which must
/// not be kept.
const LONGEST: usize = 1024;

/// An error that takes longer is not asked for with each file.
const SLOW: Duration = Duration::from_secs(1);
/// How many times longer than it took such an error is kept.
const KEPT: u32 = 10;

/// Answers of the system's user database.
#[derive(Default, Debug)]
pub struct NameCache {
    users: Answers<u32, Box<[u8]>>,
    groups: Answers<u32, Box<[u8]>>,
    user_numbers: Answers<Box<[u8]>, u32>,
    group_numbers: Answers<Box<[u8]>, u32>,
}

/// The answers about one kind of question: a user or group has none, or could not be asked for.
#[derive(Debug)]
struct Answers<K, T> {
    known: HashMap<K, Result<Option<T>, Failed>>,
    /// An error that was given since the last look for one.
    failed: Option<Errno>,
}

/// Why there was no answer.
#[derive(Debug)]
struct Failed {
    errno: Errno,
    /// Until when it is not asked again: a directory service that is down may take its time to say
    /// so, and each file would wait for it.
    until: Instant,
}

impl<K, T> Default for Answers<K, T> {
    fn default() -> Self {
        Self { known: HashMap::new(), failed: None }
    }
}

impl<K: Eq + Hash, T> Answers<K, T> {
    /// The answer to a question that has none yet, which has taken so long.
    fn keep(&mut self, key: K, answer: Result<Option<T>, Errno>, took: Duration) {
        if self.known.len() >= LIMIT {
            self.known.clear();
        }
        let kept = if took < SLOW { Duration::ZERO } else { took * KEPT };
        let answer = answer.map_err(|errno| Failed { errno, until: Instant::now() + kept });
        self.known.insert(key, answer);
    }

    /// The answer that is kept.
    fn give<Q: ?Sized + Eq + Hash>(&mut self, key: &Q) -> Option<&T>
    where
        K: Borrow<Q>,
    {
        match self.known.get(key)? {
            Ok(answer) => answer.as_ref(),
            Err(Failed { errno, .. }) => {
                self.failed = Some(*errno);
                None
            }
        }
    }

    /// Returns an error that was given since the last call, and forgets those that are asked again.
    fn take_failure(&mut self) -> Option<Errno> {
        let failed = self.failed.take()?;
        let now = Instant::now();
        self.known.retain(|_, answer| answer.as_ref().err().is_none_or(|failed| failed.until > now));
        Some(failed)
    }
}

impl Answers<u32, Box<[u8]>> {
    fn name_of(&mut self, number: u32, ask: impl FnOnce(u32) -> Result<Option<Vec<u8>>, Errno>) -> Option<&[u8]> {
        if !self.known.contains_key(&number) {
            let begun = Instant::now();
            let name = ask(number).map(|name| name.filter(|name| !name.is_empty()).map(Vec::into_boxed_slice));
            self.keep(number, name, begun.elapsed());
        }
        self.give(&number).map(AsRef::as_ref)
    }
}

impl Answers<Box<[u8]>, u32> {
    fn number_of(&mut self, name: &[u8], ask: impl FnOnce(&[u8]) -> Result<Option<u32>, Errno>) -> Option<u32> {
        if name.len() > LONGEST {
            return None;
        }
        if !self.known.contains_key(name) {
            let begun = Instant::now();
            let number = ask(name);
            self.keep(name.into(), number, begun.elapsed());
        }
        self.give(name).copied()
    }
}

impl NameCache {
    /// A cache without answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Why a number was without a name since the last call, if not all could be looked up. Those
    /// are looked up again from now on, unless that took long: a directory service may be there for
    /// the next file.
    pub fn take_failed_name(&mut self) -> Option<Errno> {
        let (user, group) = (self.users.take_failure(), self.groups.take_failure());
        user.or(group)
    }

    /// Why a name was without a number; as [`Self::take_failed_name`].
    pub fn take_failed_number(&mut self) -> Option<Errno> {
        let (user, group) = (self.user_numbers.take_failure(), self.group_numbers.take_failure());
        user.or(group)
    }
}

impl Names for NameCache {
    fn user_name(&mut self, uid: u32) -> Option<&[u8]> {
        self.users.name_of(uid, identities::user_name)
    }

    fn group_name(&mut self, gid: u32) -> Option<&[u8]> {
        self.groups.name_of(gid, identities::group_name)
    }
}

impl Identities for NameCache {
    fn user_number(&mut self, name: &[u8]) -> Option<u32> {
        self.user_numbers.number_of(name, identities::user_number)
    }

    fn group_number(&mut self, name: &[u8]) -> Option<u32> {
        self.group_numbers.number_of(name, identities::group_number)
    }
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
        assert_eq!(names.users.known.len(), 1);
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
        let mut names = Answers::default();
        for number in 0..20_000 {
            names.name_of(number, |_| Ok(None));
            assert!(names.known.len() <= LIMIT);
        }
        let mut numbers = Answers::default();
        for number in 0..20_000_u32 {
            numbers.number_of(&number.to_be_bytes(), |_| Ok(None));
            assert!(numbers.known.len() <= LIMIT);
        }
        numbers.known.clear();
        assert_eq!(numbers.number_of("a".repeat(1_000_000).as_bytes(), |_| Ok(Some(1))), None);
        assert!(numbers.known.is_empty());
    }

    #[test]
    fn an_error_is_kept_until_it_is_taken() {
        let mut names = Answers::default();
        let root: Box<[u8]> = b"root".as_slice().into();
        assert_eq!(names.name_of(0, |_| Ok(Some(root.to_vec()))), Some(&*root));
        assert_eq!(names.take_failure(), None);
        assert_eq!(names.name_of(7, |_| Err(Errno::EIO)), None);
        assert_eq!(names.name_of(7, |_| panic!("a listing asks once")), None);
        assert_eq!(names.take_failure(), Some(Errno::EIO));
        assert_eq!(names.name_of(7, |_| Ok(Some(b"anna".to_vec()))), Some(b"anna".as_slice()));
        assert_eq!(names.take_failure(), None);
        assert_eq!(names.name_of(0, |_| panic!("that answer is kept")), Some(&*root));

        let mut numbers = Answers::default();
        assert_eq!((numbers.number_of(b"anna", |_| Err(Errno::EIO)), numbers.take_failure()), (None, Some(Errno::EIO)));
        assert_eq!(numbers.number_of(b"anna", |_| Ok(Some(7))), Some(7));
        assert_eq!(numbers.number_of(b"anna", |_| Err(Errno::EIO)), Some(7));
    }

    #[test]
    fn an_error_that_takes_long_is_kept_for_longer_than_it_took() {
        let mut numbers = Answers::default();
        let anna: Box<[u8]> = b"anna".as_slice().into();
        numbers.keep(anna, Err(Errno::ETIMEDOUT), Duration::from_secs(3600));
        for _ in 0..2 {
            assert_eq!(numbers.number_of(b"anna", |_| panic!("the next file does not wait")), None);
            assert_eq!(numbers.take_failure(), Some(Errno::ETIMEDOUT));
        }
        assert_eq!(numbers.take_failure(), None);
    }
}
