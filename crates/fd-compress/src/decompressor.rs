//! The algorithms for a restore or a verify: one record in, its block out, at most a limit.

use fd_records::CompressionHeader;

use crate::error::DecompressError;
use crate::{gzip, lzo1x, zstd};

/// The most data that a record may hold unless the caller says otherwise, in bytes (16 MiB).
///
/// The stock daemon has no limit, so one damaged or hostile record of 1,000,000 bytes can make it
/// allocate 255 MB (LZO), 1 GB (zlib) or more (zstd). A writer's block is one `read()` of its
/// network buffer, 65536 bytes unless configured; a buffer of more than 1,000,000 bytes fails at
/// the first block that does not shrink. Sixteen times that leaves room for every working writer
/// and is a harmless allocation.
pub const DEFAULT_LIMIT: usize = 16 << 20;

/// Size of the first buffer: the default network buffer.
const USUAL_BLOCK: usize = 65536;

/// Decompresses records, each on its own. One per thread; its buffers grow to the largest block
/// seen, at most to the limit, and stay.
pub struct Decompressor {
    limit: usize,
    buffer: Vec<u8>,
    inflate: libdeflater::Decompressor,
    zstd: Option<::zstd::zstd_safe::DCtx<'static>>,
}

impl Default for Decompressor {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl Decompressor {
    /// For records of at most `limit` bytes of data each.
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: Vec::new(), inflate: libdeflater::Decompressor::new(), zstd: None }
    }

    /// Appends the data of a record whose packing is [`fd_records::Packing::Zlib`] (address
    /// removed, decrypted) to `out`, which on an error is as it was. Bytes after the zlib stream
    /// are ignored.
    pub fn zlib(&mut self, record: &[u8], out: &mut Vec<u8>) -> Result<(), DecompressError> {
        self.grow(USUAL_BLOCK);
        loop {
            match gzip::inflate(&mut self.inflate, record, limited(&mut self.buffer, self.limit)) {
                Ok(len) => return self.hand_over(len, out),
                Err(gzip::InflateError::Data) => return Err(DecompressError::ZlibData),
                Err(gzip::InflateError::Room) => self.double()?,
            }
        }
    }

    /// Appends the data of a record whose packing is [`fd_records::Packing::WithHeader`] (address
    /// removed, decrypted) to `out`, which on an error is as it was. The checks and their order are
    /// those of reference 05 §7.2.
    pub fn with_header(&mut self, record: &[u8], out: &mut Vec<u8>) -> Result<(), DecompressError> {
        let Some((header, data)) = CompressionHeader::split(record) else {
            return Err(DecompressError::ShortHeader { len: record.len() });
        };
        if header.version != CompressionHeader::VERSION {
            return Err(DecompressError::HeaderVersion { got: header.version, want: CompressionHeader::VERSION });
        }
        if u32::try_from(data.len()) != Ok(header.size) {
            return Err(DecompressError::HeaderSize { comp_len: header.size, msg_len: record.len() });
        }
        match header.magic {
            CompressionHeader::LZO => self.lzo(data, out),
            CompressionHeader::ZSTD => self.zstd(data, out),
            magic => Err(DecompressError::Algorithm { magic }),
        }
    }

    fn lzo(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), DecompressError> {
        lzo1x::decompress(data, self.limit, out).map_err(|error| match error {
            lzo1x::Error::OutputOverrun => DecompressError::TooLarge { limit: self.limit },
            other => DecompressError::Lzo(other),
        })
    }

    fn zstd(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), DecompressError> {
        let size = usize::try_from(zstd::content_size(data)?).unwrap_or(usize::MAX);
        if size > self.limit {
            return Err(DecompressError::TooLarge { limit: self.limit });
        }
        self.grow(size);
        let context = match &mut self.zstd {
            Some(context) => context,
            none => none.insert(::zstd::zstd_safe::DCtx::try_create().ok_or(DecompressError::ZstdContext)?),
        };
        let len = zstd::decompress(context, data, limited(&mut self.buffer, size))?;
        self.hand_over(len, out)
    }

    /// Makes the buffer at least `len` bytes long.
    fn grow(&mut self, len: usize) {
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
    }

    /// Doubles the buffer for a block that did not fit, up to the limit.
    fn double(&mut self) -> Result<(), DecompressError> {
        if self.buffer.len() >= self.limit {
            return Err(DecompressError::TooLarge { limit: self.limit });
        }
        self.grow(self.buffer.len().saturating_mul(2).min(self.limit));
        Ok(())
    }

    fn hand_over(&self, len: usize, out: &mut Vec<u8>) -> Result<(), DecompressError> {
        let data = self.buffer.get(..len).ok_or(DecompressError::TooLarge { limit: self.limit })?;
        out.extend_from_slice(data);
        Ok(())
    }
}

/// The first `limit` bytes of the buffer, or all of it.
fn limited(buffer: &mut [u8], limit: usize) -> &mut [u8] {
    let len = buffer.len().min(limit);
    buffer.get_mut(..len).unwrap_or_default()
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("limit", &self.limit).finish_non_exhaustive()
    }
}
