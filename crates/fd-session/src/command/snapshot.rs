//! `snapshot` (reference 02 §4.5).

use fd_bsock::scan::{Lenient, WORD_MAX, unbash_spaces};

/// What a `snapshot` command asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SnapshotOrder {
    /// How long the job's snapshots are kept, in seconds, as written.
    Retention(Vec<u8>),
    /// The snapshots of this host.
    List,
    /// One snapshot's state and size.
    Query(NamedSnapshot),
    /// What is in a snapshot.
    Content,
    /// A snapshot is to be deleted.
    Delete(NamedSnapshot),
    /// Old snapshots are to be deleted.
    Prune,
}

/// A snapshot as the Director knows it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NamedSnapshot {
    /// Its name, that of a job.
    pub name: Vec<u8>,
    /// What the helper program calls it.
    pub volume: Vec<u8>,
    /// The device of which it was made.
    pub device: Vec<u8>,
    /// The kind of snapshot: `btrfs`, `lvm`.
    pub kind: Vec<u8>,
}

impl SnapshotOrder {
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        if frame.starts_with(b"snapshot list") {
            return Some(Self::List);
        }
        let values = |head: &str, fields: &[&str]| -> Option<Vec<Vec<u8>>> {
            let mut scan = Lenient::new(frame);
            scan.text(head)?;
            fields.iter().map(|field| scan.text(field).map(|scan| unbash_spaces(scan.word(WORD_MAX)))).collect()
        };
        if let Some(values) = values("snapshot ", &["retention="]) {
            return Some(Self::Retention(values.concat()));
        }
        let named = [" name=", " volume=", " device=", " tdate=", " type="];
        let snapshot = |values: Vec<Vec<u8>>| {
            let [name, volume, device, _, kind] = <[Vec<u8>; 5]>::try_from(values).unwrap_or_default();
            NamedSnapshot { name, volume, device, kind }
        };
        if let Some(values) = values("snapshot query", &named) {
            return Some(Self::Query(snapshot(values)));
        }
        if values("snapshot ls", &[&named[..], &[" path="]].concat()).is_some() {
            return Some(Self::Content);
        }
        if let Some(values) = values("snapshot del", &named) {
            return Some(Self::Delete(snapshot(values)));
        }
        values("snapshot prune", &[" volume=", " type="]).map(|_| Self::Prune)
    }
}
