//! Sets of bytes: what one place of an expression may match.

/// Bytes of one place of a text. `wide` ones may be characters of several bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Set {
    pub(super) bytes: [u64; 4],
    pub(super) wide: bool,
}

impl Set {
    pub(super) const NONE: Self = Self { bytes: [0; 4], wide: false };
    pub(super) const ALL: Self = Self { bytes: [u64::MAX; 4], wide: true };

    pub(super) fn add(&mut self, byte: u8) {
        if let Some(word) = self.bytes.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    pub(super) fn add_range(&mut self, range: std::ops::RangeInclusive<u8>) {
        range.for_each(|byte| self.add(byte));
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        self.bytes.get(usize::from(byte >> 6)).is_some_and(|word| word >> (byte & 63) & 1 == 1)
    }

    pub(super) fn literal(byte: u8, ignore_case: bool) -> Self {
        let mut set = Self::NONE;
        set.add(byte);
        if ignore_case {
            set.fold_case();
        }
        set
    }

    /// Which letters belong together is for the locale to say beyond ASCII, and there even `k` has
    /// a third form.
    pub(super) fn fold_case(&mut self) {
        for byte in 0..=u8::MAX {
            if self.has(byte) && byte.is_ascii_alphabetic() {
                self.add(byte ^ 0x20);
                self.widen();
            }
        }
        if (128..=u8::MAX).any(|byte| self.has(byte)) {
            self.widen();
        }
    }

    pub(super) fn widen(&mut self) {
        self.add_range(128..=u8::MAX);
        self.wide = true;
    }
}
