//! `snapshot` (reference 02 §4.5).

use fd_bsock::scan::Lenient;

/// What a `snapshot` command asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotOrder {
    /// How long snapshots are kept.
    Retention,
    /// The snapshots of this host.
    List,
    /// One snapshot's state and size.
    Query,
    /// What is in a snapshot.
    Content,
    /// A snapshot is to be deleted.
    Delete,
    /// Old snapshots are to be deleted.
    Prune,
}

impl SnapshotOrder {
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        if frame.starts_with(b"snapshot list") {
            return Some(Self::List);
        }
        let fits = |head: &str, fields: &[&str]| {
            let mut scan = Lenient::new(frame);
            scan.text(head).is_some()
                && fields.iter().all(|field| scan.text(field).map(|scan| scan.word(1000)).is_some())
        };
        let named = [" name=", " volume=", " device=", " tdate=", " type="];
        let with_path = [" name=", " volume=", " device=", " tdate=", " type=", " path="];
        let forms: [(Self, &str, &[&str]); 5] = [
            (Self::Retention, "snapshot ", &["retention="]),
            (Self::Query, "snapshot query", &named),
            (Self::Content, "snapshot ls", &with_path),
            (Self::Delete, "snapshot del", &named),
            (Self::Prune, "snapshot prune", &[" volume=", " type="]),
        ];
        forms.into_iter().find(|(_, head, fields)| fits(head, fields)).map(|(order, ..)| order)
    }
}
