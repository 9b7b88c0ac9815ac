//! The algorithms for a backup: one block in, one record out.

use fd_records::{Compression, CompressionHeader};

use crate::error::CompressError;
use crate::gzip::Gzip;
use crate::lzo1x::LzoEncoder;
use crate::zstd::Zstd;

/// Compresses blocks, each on its own, to the bytes of a record. One per thread: it owns the
/// algorithm's working memory (16 KiB to some megabytes, by algorithm and level), which is reused
/// from block to block; it keeps no data of an earlier block.
pub struct Compressor(Algorithm);

enum Algorithm {
    Gzip(Gzip),
    Lzo(LzoEncoder),
    Zstd(Zstd),
}

impl Compressor {
    /// Makes records whose packing is [`Compression::packing`]. Other levels than these are
    /// refused: GZIP has 0 (which stores) to 9, ZSTD has 1 to 22.
    pub fn new(compression: Compression) -> Result<Self, CompressError> {
        Ok(Self(match compression {
            Compression::Gzip(level) => Algorithm::Gzip(Gzip::new(level)?),
            Compression::Lzo => Algorithm::Lzo(LzoEncoder::new()),
            Compression::Zstd(level) => Algorithm::Zstd(Zstd::new(level)?),
        }))
    }

    /// Appends the record of `block` to `out`, which on an error is as it was. The record is made
    /// and kept even if it is longer than the block: there is no "stored" form. An incompressible
    /// block of 65536 bytes grows by less than 400 bytes.
    pub fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
        let start = out.len();
        let done = match &mut self.0 {
            Algorithm::Gzip(gzip) => gzip.compress(block).map(|data| out.extend_from_slice(data)),
            Algorithm::Lzo(lzo) => {
                with_header(CompressionHeader::LZO, out, |out| lzo.append(block, out).map_err(CompressError::Lzo))
            }
            Algorithm::Zstd(zstd) => with_header(CompressionHeader::ZSTD, out, |out| {
                zstd.compress(block).map(|data| out.extend_from_slice(data))
            }),
        };
        if done.is_err() {
            out.truncate(start);
        }
        done
    }
}

/// Appends what `append` appends, after a header with its length.
fn with_header(
    magic: u32,
    out: &mut Vec<u8>,
    append: impl FnOnce(&mut Vec<u8>) -> Result<(), CompressError>,
) -> Result<(), CompressError> {
    let start = out.len();
    let empty = CompressionHeader::new(magic, 0).to_bytes();
    out.extend_from_slice(&empty);
    append(out)?;
    let len = out.len() - start - empty.len();
    let len = u32::try_from(len).map_err(|_| CompressError::TooLong { len })?;
    let header = CompressionHeader::new(magic, len).to_bytes();
    if let Some(place) = out.get_mut(start..start + header.len()) {
        place.copy_from_slice(&header);
    }
    Ok(())
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}
