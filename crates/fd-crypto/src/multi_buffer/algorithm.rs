//! The algorithms that have kernels: the state of a message, its padding, and its value.

use fd_records::{DigestKind, DigestValue};

use super::constants::{MD5_START, SHA256_START};

/// Bytes that an algorithm takes at a time.
pub const BLOCK: usize = 64;

/// Messages that the wide kernel takes at a time.
pub(super) const WIDE: usize = 16;

/// Messages that the narrow kernel takes at a time.
pub(super) const NARROW: usize = 8;

/// A block of zeros.
pub(super) const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// The state of one message after whole blocks. MD5 has four words only; the others are 0.
pub(super) type Words = [u32; 8];

/// Blocks of one message, one behind the other.
pub(super) type Run<'b> = &'b [[u8; BLOCK]];

/// An algorithm that has kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Algorithm {
    /// MD5, by RFC 1321.
    Md5,
    /// SHA-256, by FIPS 180-4.
    Sha256,
}

impl Algorithm {
    /// All of them.
    pub(super) const ALL: [Self; 2] = [Self::Md5, Self::Sha256];

    /// The algorithm of this kind of digest.
    pub(super) fn of(kind: DigestKind) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.kind() == kind)
    }

    /// The kind of digest that it makes.
    pub(super) const fn kind(self) -> DigestKind {
        match self {
            Self::Md5 => DigestKind::Md5,
            Self::Sha256 => DigestKind::Sha256,
        }
    }

    /// The state before the first block.
    pub(super) const fn start(self) -> Words {
        match self {
            Self::Md5 => MD5_START,
            Self::Sha256 => SHA256_START,
        }
    }

    /// The digest of which this is the state after the last block.
    pub(super) fn value(self, words: Words) -> DigestValue {
        let word_bytes = match self {
            Self::Md5 => u32::to_le_bytes,
            Self::Sha256 => u32::to_be_bytes,
        };
        DigestValue::from_start(self.kind(), words.map(word_bytes).as_flattened())
    }

    /// The last bytes of a message of `length` bytes with their padding: one bit, zeros, and the
    /// length in bits; and how many blocks that makes.
    pub(super) fn padded(self, last: &[u8], length: u64) -> ([[u8; BLOCK]; 2], usize) {
        let mut tail = [ZEROS; 2];
        let end = last.iter().chain(&[0x80]);
        tail.as_flattened_mut().iter_mut().zip(end).for_each(|(place, byte)| *place = *byte);
        let blocks = if last.len() + 1 + 8 <= BLOCK { 1 } else { 2 };
        if let Some(place) = tail.get_mut(blocks - 1).and_then(|block| block.last_chunk_mut()) {
            let bits = length.wrapping_mul(8);
            *place = match self {
                Self::Md5 => bits.to_le_bytes(),
                Self::Sha256 => bits.to_be_bytes(),
            };
        }
        (tail, blocks)
    }
}
