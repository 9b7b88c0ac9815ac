//! Sets of digest kinds, and the values of the digests of one message.

use fd_records::{DigestKind, DigestValue};

/// Kinds of digests, each at most once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DigestSet(u16);

impl DigestSet {
    /// No kind.
    pub const EMPTY: Self = Self(0);

    const fn bit(kind: DigestKind) -> u16 {
        1 << kind as u16
    }

    /// The set and this kind.
    #[must_use]
    pub const fn with(self, kind: DigestKind) -> Self {
        Self(self.0 | Self::bit(kind))
    }

    /// Whether the kind is in the set.
    pub const fn contains(self, kind: DigestKind) -> bool {
        self.0 & Self::bit(kind) != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kinds that are not in the other set.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The kinds, in the order of [`DigestKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = DigestKind> {
        DigestKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<DigestKind> for DigestSet {
    fn from_iter<I: IntoIterator<Item = DigestKind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// The digests of one message, at most two.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DigestValues([Option<DigestValue>; 2]);

impl DigestValues {
    /// The digest of this kind, if there is one.
    pub fn get(&self, kind: DigestKind) -> Option<DigestValue> {
        self.0.into_iter().flatten().find(|value| value.kind() == kind)
    }

    /// Adds a value, or replaces the one of its kind. A third kind is dropped.
    pub(crate) fn set(&mut self, value: DigestValue) {
        if let Some(place) = self.0.iter_mut().find(|place| place.is_none_or(|known| known.kind() == value.kind())) {
            *place = Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_kinds_that_were_added_in_the_order_of_all_kinds() {
        let set: DigestSet = [DigestKind::Sha256, DigestKind::Md5, DigestKind::Sha256].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [DigestKind::Md5, DigestKind::Sha256]);
        assert!(set.contains(DigestKind::Md5) && !set.contains(DigestKind::Sha1));
        let left = set.without(DigestSet::EMPTY.with(DigestKind::Md5));
        assert_eq!(left, DigestSet::EMPTY.with(DigestKind::Sha256));
        assert!(left.without(set).is_empty());
        let all: DigestSet = DigestKind::ALL.into_iter().collect();
        assert_eq!(all.iter().count(), DigestKind::ALL.len());
    }
}
