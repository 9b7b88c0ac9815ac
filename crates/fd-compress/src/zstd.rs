//! ZSTD: one independent frame per record, with its content size, without checksum or dictionary
//! (reference 04 §8.6).

use zstd::zstd_safe::{CCtx, CParameter, DCtx, ErrorCode, compress_bound, get_frame_content_size};

use crate::error::{CompressError, DecompressError};

/// The compressor of one level.
pub(crate) struct Zstd {
    context: CCtx<'static>,
    /// Room for the largest frame so far.
    buffer: Vec<u8>,
}

impl Zstd {
    /// Level 1 to 22.
    pub(crate) fn new(level: i32) -> Result<Self, CompressError> {
        if !(1..=zstd::zstd_safe::max_c_level()).contains(&level) {
            return Err(CompressError::Level { algorithm: "ZSTD", level });
        }
        let mut context = CCtx::try_create().ok_or(CompressError::ZstdContext)?;
        for parameter in [
            CParameter::CompressionLevel(level),
            CParameter::ContentSizeFlag(true),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ] {
            context.set_parameter(parameter).map_err(|code| CompressError::Zstd { code: signed(code) })?;
        }
        Ok(Self { context, buffer: Vec::new() })
    }

    /// The frame of a block.
    pub(crate) fn compress(&mut self, block: &[u8]) -> Result<&[u8], CompressError> {
        let bound = compress_bound(block.len());
        if self.buffer.len() < bound {
            self.buffer.resize(bound, 0);
        }
        let len = self
            .context
            .compress2(self.buffer.as_mut_slice(), block)
            .map_err(|code| CompressError::Zstd { code: signed(code) })?;
        Ok(self.buffer.get(..len).unwrap_or_default())
    }
}

/// zstd's error codes are small negative numbers, carried in a `size_t`.
fn signed(code: ErrorCode) -> i32 {
    i32::try_from(code.wrapping_neg()).map_or(i32::MIN, |code| -code)
}

/// Number of data bytes that the frame announces.
pub(crate) fn content_size(frame: &[u8]) -> Result<u64, DecompressError> {
    match get_frame_content_size(frame) {
        Ok(Some(size)) => Ok(size),
        Ok(None) => Err(DecompressError::ZstdContentSize { code: -1 }),
        Err(_) => Err(DecompressError::ZstdContentSize { code: -2 }),
    }
}

/// Writes the data of the frames in `data` to `out` and returns their number.
pub(crate) fn decompress(context: &mut DCtx<'_>, data: &[u8], out: &mut [u8]) -> Result<usize, DecompressError> {
    context.decompress(out, data).map_err(|code| DecompressError::ZstdDecompress { code: signed(code) })
}
