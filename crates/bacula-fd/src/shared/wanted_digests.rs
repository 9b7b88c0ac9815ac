//! Which digests files and the data of plugins have, as far as the daemon has seen. A restore
//! learns the kind of a file's digest only behind its data, and reads a file again whose kind it
//! has not expected.
//!
//! The kind of the last backup is also in `WORKING_DIRECTORY/bacula-fd.PORT.digest`, for the next
//! daemon. A file that is missing or damaged costs the first restore that reading, nothing more.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fd_crypto::DigestSet;
use fd_os::lock::Mutex;
use fd_records::DigestKind;

use crate::security::own_file;

/// The file's mode.
const MODE: u32 = 0o640;
/// More bytes than any name has.
const MOST: u64 = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct WantedDigests {
    path: PathBuf,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    /// What the backups since the daemon's start have wanted; `None` if there was none.
    since_start: Option<DigestSet>,
    /// The kind of the last one that has wanted any.
    last: Option<DigestKind>,
    /// The file has another one: it could not be written.
    is_unwritten: bool,
}

impl WantedDigests {
    /// Those of a daemon that listens on this port; reads what the one before it has left.
    pub(crate) fn new(working_directory: &Path, port: u16) -> Self {
        let path = own_file::path(working_directory, port, "digest");
        let last = read(&path).ok().flatten();
        Self { path, seen: Mutex::new(Seen { since_start: None, last, is_unwritten: false }) }
    }

    /// A backup makes these digests; `None` is none.
    pub(crate) fn note(&self, digests: impl Iterator<Item = Option<DigestKind>>) {
        let mut seen = self.seen.lock();
        let before = seen.last;
        for digest in digests {
            let known = seen.since_start.unwrap_or(DigestSet::EMPTY);
            seen.since_start = Some(digest.map_or(known, |kind| known.with(kind)));
            seen.last = digest.or(seen.last);
        }
        let Some(last) = seen.last.filter(|last| seen.is_unwritten || before != Some(*last)) else { return };
        let written = own_file::replace(&self.path, MODE, last.name().as_bytes());
        seen.is_unwritten = written.is_err();
        if let Err(error) = written {
            let path = self.path.display();
            tracing::warn!(%error, %path, "the next daemon will not know the kind of the last digests");
        }
    }

    /// The kinds that a restore may meet first, the likely one in front; `None` if nothing is
    /// known.
    pub(crate) fn kinds(&self) -> Option<Vec<DigestKind>> {
        let Seen { since_start, last, .. } = *self.seen.lock();
        let mut kinds: Vec<_> = match since_start {
            Some(known) => known.iter().collect(),
            None => DigestKind::ALL.into_iter().filter(|kind| kind.is_guessed() || last == Some(*kind)).collect(),
        };
        kinds.sort_by_key(|kind| last != Some(*kind));
        (since_start.is_some() || last.is_some()).then_some(kinds)
    }
}

fn read(path: &Path) -> io::Result<Option<DigestKind>> {
    let mut name = Vec::new();
    own_file::read(path)?.take(MOST).read_to_end(&mut name)?;
    Ok(DigestKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ferrofd-digests-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn nothing_is_known_until_there_is_a_backup() {
        let folder = folder("backup");
        let digests = WantedDigests::new(&folder, 9102);
        digests.note([].into_iter());
        assert_eq!(digests.kinds(), None);
        digests.note([None].into_iter());
        assert_eq!(digests.kinds(), Some(Vec::new()));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        digests.note([Some(DigestKind::Sha256), None].into_iter());
        digests.note([Some(DigestKind::Md5)].into_iter());
        assert_eq!(digests.kinds(), Some(vec![DigestKind::Md5, DigestKind::Sha256]));
        digests.note([Some(DigestKind::Sha256)].into_iter());
        assert_eq!(digests.kinds(), Some(vec![DigestKind::Sha256, DigestKind::Md5]));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_next_daemon_expects_the_kind_of_the_last_backup_first() {
        let folder = folder("next");
        let guessed: Vec<_> = DigestKind::ALL.into_iter().filter(|kind| kind.is_guessed()).collect();
        for kind in DigestKind::ALL {
            WantedDigests::new(&folder, 9102).note([Some(kind), None].into_iter());
            let kinds = WantedDigests::new(&folder, 9102).kinds().unwrap();
            assert_eq!(kinds.first(), Some(&kind));
            assert!(guessed.iter().all(|guessed| kinds.contains(guessed)), "{kinds:?}");
            assert_eq!(kinds.len(), guessed.len() + usize::from(!kind.is_guessed()));
        }
        assert_eq!(WantedDigests::new(&folder, 9103).kinds(), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_kind_that_could_not_be_written_is_written_with_the_next_backup() {
        let folder = folder("full");
        let path = folder.join("missing");
        let digests = WantedDigests::new(&path, 1);
        digests.note([Some(DigestKind::Sha1)].into_iter());
        fs::create_dir(&path).unwrap();
        digests.note([Some(DigestKind::Sha1)].into_iter());
        assert!(WantedDigests::new(&path, 1).kinds().is_some());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let folder = folder("damaged");
        let path = folder.join("bacula-fd.1.digest");
        for content in [&b""[..], b"MD", b"MD5\n", b"SHA3", &[b'M'; 100]] {
            fs::write(&path, content).unwrap();
            assert_eq!(WantedDigests::new(&folder, 1).kinds(), None, "{}", content.escape_ascii());
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let digests = WantedDigests::new(&folder, 1);
        digests.note([Some(DigestKind::Sha1)].into_iter());
        assert_eq!(digests.kinds(), Some(vec![DigestKind::Sha1]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
