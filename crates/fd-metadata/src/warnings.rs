//! How many warnings about metadata a backup shows, and the summary at its end.

use fd_records::MetadataKind;

use crate::texts;

/// What of one kind could not be read of one file, or set on it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Failures {
    /// A warning about each, complete with line end, as far as texts are made.
    pub texts: Vec<Vec<u8>>,
    /// How many there are.
    pub count: u32,
}

impl Failures {
    /// Counts one more. It has a text if fewer than [`WarningLimit::MOST`] have been `told`.
    pub(crate) fn add(&mut self, told: &mut usize, text: impl FnOnce() -> Vec<u8>) {
        self.count = self.count.saturating_add(1);
        if *told < WarningLimit::MOST {
            *told += 1;
            self.texts.push(text());
        }
    }
}

/// Counts warnings of one kind over a job. Only the first 25 are shown (reference 04 §11), and all
/// are counted.
///
/// Ask it where the job's messages stand in the order of the files, so that the same 25 are shown
/// however many threads read.
#[derive(Clone, Copy, Debug)]
pub struct WarningLimit {
    kind: MetadataKind,
    shown: usize,
    count: u64,
}

impl WarningLimit {
    /// How many warnings of one kind a job shows.
    pub const MOST: usize = 25;

    /// Nothing counted yet.
    pub const fn new(kind: MetadataKind) -> Self {
        Self { kind, shown: 0, count: 0 }
    }

    /// Counts failures, and returns the texts that may be shown.
    pub fn admit(&mut self, failures: Failures) -> impl Iterator<Item = Vec<u8>> {
        self.count = self.count.saturating_add(failures.count.into());
        let left = Self::MOST - self.shown;
        self.shown += failures.texts.len().min(left);
        failures.texts.into_iter().take(left)
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
    fn twenty_five_are_shown_and_all_are_counted() {
        let mut limit = WarningLimit::new(MetadataKind::Xattr);
        assert_eq!(limit.summary(), None);
        let mut told = 0;
        let mut failures = Failures::default();
        for number in 0..100_u8 {
            failures.add(&mut told, || vec![number]);
        }
        assert_eq!(failures.texts.len(), 25, "no more than that are made");
        for _ in 0..2 {
            limit.admit(Failures { texts: vec![vec![7]; 2], count: 3 }).for_each(drop);
        }
        assert_eq!(limit.admit(failures.clone()).count(), 21);
        assert_eq!(limit.admit(failures).count(), 0);
        assert_eq!(limit.summary().unwrap(), b"Had 206 xattr errors while doing backup\n");
    }
}
