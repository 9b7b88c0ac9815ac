//! From a data record to the data: its address and its decompression (reference 05 §7.1, §7.2).

use fd_compress::{DecompressError, Decompressor};
use fd_records::{DataLayout, Packing};

/// Undoes what was done to one record.
pub(crate) struct Unpacker {
    decompressor: Decompressor,
    plain: Vec<u8>,
}

/// The data of a record.
pub(crate) struct Unpacked<'a> {
    /// Its address in the file, if the record has one.
    pub(crate) address: Option<u64>,
    /// As it was read from the file.
    pub(crate) data: &'a [u8],
}

/// Why a record can't be unpacked.
pub(crate) enum UnpackError {
    /// It has no room for its address.
    ShortAddress,
    /// Its compressed data is damaged.
    Compression(DecompressError),
}

impl Unpacker {
    pub(crate) fn new() -> Self {
        Self { decompressor: Decompressor::default(), plain: Vec::new() }
    }

    pub(crate) fn unpack<'a>(&'a mut self, layout: DataLayout, record: &'a [u8]) -> Result<Unpacked<'a>, UnpackError> {
        let (address, packed) = if layout.has_address {
            let (address, packed) = record.split_first_chunk().ok_or(UnpackError::ShortAddress)?;
            (Some(u64::from_be_bytes(*address)), packed)
        } else {
            (None, record)
        };
        self.plain.clear();
        match layout.packing {
            Packing::Plain => return Ok(Unpacked { address, data: packed }),
            Packing::Zlib => self.decompressor.zlib(packed, &mut self.plain),
            Packing::WithHeader => self.decompressor.with_header(packed, &mut self.plain),
        }
        .map_err(UnpackError::Compression)?;
        Ok(Unpacked { address, data: &self.plain })
    }
}
