//! Which digests files and the data of plugins have, as far as the daemon has seen. A restore
//! learns the kind of a file's digest only behind its data.

use fd_crypto::DigestSet;
use fd_os::lock::Mutex;
use fd_records::DigestKind;

/// What the backups since the daemon's start have wanted; `None` if there was none.
#[derive(Debug, Default)]
pub(crate) struct WantedDigests(Mutex<Option<DigestSet>>);

impl WantedDigests {
    /// A backup makes these digests; `None` is none.
    pub(crate) fn note(&self, digests: impl Iterator<Item = Option<DigestKind>>) {
        for digest in digests {
            let mut kinds = self.0.lock();
            let known = kinds.unwrap_or(DigestSet::EMPTY);
            *kinds = Some(digest.map_or(known, |kind| known.with(kind)));
        }
    }

    /// The kinds of all backups together; `None` if there was no backup.
    pub(crate) fn kinds(&self) -> Option<DigestSet> {
        *self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_until_there_is_a_backup() {
        let digests = WantedDigests::default();
        digests.note([].into_iter());
        assert_eq!(digests.kinds(), None);
        digests.note([None].into_iter());
        assert_eq!(digests.kinds(), Some(DigestSet::EMPTY));
        digests.note([Some(DigestKind::Sha256), None].into_iter());
        digests.note([Some(DigestKind::Md5)].into_iter());
        assert_eq!(digests.kinds(), Some([DigestKind::Sha256, DigestKind::Md5].into_iter().collect()));
    }
}
