//! GZIP as Bacula means it: every record is one complete zlib stream (reference 04 §8.5, 05 §7.2).

use libdeflater::{CompressionLvl, DecompressionError};

use crate::compressor::CompressBlock;
use crate::error::CompressError;

/// zlib's code for "output buffer too small".
const Z_BUF_ERROR: i32 = -5;

/// The compressor of one level.
pub(crate) struct Gzip {
    deflate: libdeflater::Compressor,
    /// The two bytes with which zlib itself starts a stream of this level.
    head: [u8; 2],
    /// Room for the largest record so far. Kept, because a fresh one would have to be zeroed for every block.
    buffer: Vec<u8>,
}

impl Gzip {
    /// Level 0 to 9.
    pub(crate) fn new(level: u8) -> Result<Self, CompressError> {
        let bad_level = CompressError::Level { algorithm: "GZIP", level: i32::from(level) };
        let head = match level {
            0 | 1 => [0x78, 0x01],
            2..=5 => [0x78, 0x5e],
            6 => [0x78, 0x9c],
            7..=9 => [0x78, 0xda],
            _ => return Err(bad_level),
        };
        let deflate_level = CompressionLvl::new(i32::from(level)).map_err(|_| bad_level)?;
        Ok(Self { deflate: libdeflater::Compressor::new(deflate_level), head, buffer: Vec::new() })
    }
}

impl CompressBlock for Gzip {
    fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
        let bound = self.deflate.zlib_compress_bound(block.len());
        if self.buffer.len() < bound {
            self.buffer.resize(bound, 0);
        }
        let len = self
            .deflate
            .zlib_compress(block, &mut self.buffer)
            .map_err(|libdeflater::CompressionError::InsufficientSpace| CompressError::Deflate { code: Z_BUF_ERROR })?;
        if let Some(head) = self.buffer.first_chunk_mut() {
            *head = self.head;
        }
        out.extend_from_slice(self.buffer.get(..len).unwrap_or_default());
        Ok(())
    }
}

/// Why a zlib stream did not come out.
pub(crate) enum InflateError {
    /// The data need more room than `out` has.
    Room,
    /// Cut, damaged, or no zlib stream.
    Data,
}

/// Writes the data of the zlib stream at the front of `record` to `out` and says how many bytes they are. Bytes
/// after the stream are ignored, as the stock daemon does.
pub(crate) fn inflate(
    state: &mut libdeflater::Decompressor,
    record: &[u8],
    out: &mut [u8],
) -> Result<usize, InflateError> {
    state.zlib_decompress(record, out).map_err(|error| match error {
        DecompressionError::InsufficientSpace => InflateError::Room,
        DecompressionError::BadData => InflateError::Data,
    })
}
