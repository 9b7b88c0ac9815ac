//! How many warnings about metadata a backup shows, and the summary at its end.

use fd_records::MetadataKind;

use crate::texts;

/// Counts warnings of one kind over a job. Only the first 25 are shown, and only those are counted
/// (reference 04 §11).
///
/// Ask it where the job's messages stand in the order of the files, so that the same 25 are shown
/// however many threads read.
#[derive(Clone, Copy, Debug)]
pub struct WarningLimit {
    kind: MetadataKind,
    count: u32,
}

impl WarningLimit {
    /// How many warnings of one kind a job shows.
    pub const MOST: u32 = 25;

    /// Nothing counted yet.
    pub const fn new(kind: MetadataKind) -> Self {
        Self { kind, count: 0 }
    }

    /// Whether one more may be shown. Counts it.
    pub fn admit(&mut self) -> bool {
        let admitted = self.count < Self::MOST;
        self.count += u32::from(admitted);
        admitted
    }

    /// The warning for the end of the job; `None` if there were none.
    pub fn summary(&self) -> Option<Vec<u8>> {
        (self.count > 0).then(|| texts::saving_summary(self.kind, self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_five_are_shown_and_counted() {
        let mut limit = WarningLimit::new(MetadataKind::Xattr);
        assert_eq!(limit.summary(), None);
        let shown = (0..100).filter(|_| limit.admit()).count();
        assert_eq!(shown, 25);
        assert_eq!(limit.summary().unwrap(), b"Had 25 xattr errors while doing backup\n");
    }
}
