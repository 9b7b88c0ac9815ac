//! From a data record to the data: its address and its decompression (reference 05 §7.1, §7.2).

use fd_compress::{DecompressError, Decompressor};
use fd_records::{DataLayout, Packing};

/// Undoes what was done to one record.
pub(crate) struct Unpacker {
    decompressor: Decompressor,
    plain: Vec<u8>,
}

/// A record that is unpacked: [`Unpacker::data`] has its data until the next one is.
pub(crate) struct Unpacked {
    /// The address of the data in the file, if the record has one.
    pub(crate) address: Option<u64>,
    is_packed: bool,
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

    pub(crate) fn unpack(&mut self, layout: DataLayout, record: &[u8]) -> Result<Unpacked, UnpackError> {
        let (address, packed) = if layout.has_address {
            let (address, packed) = record.split_first_chunk().ok_or(UnpackError::ShortAddress)?;
            (Some(u64::from_be_bytes(*address)), packed)
        } else {
            (None, record)
        };
        self.plain.clear();
        match layout.packing {
            Packing::Plain => return Ok(Unpacked { address, is_packed: false }),
            Packing::Zlib => self.decompressor.zlib(packed, &mut self.plain),
            Packing::WithHeader => self.decompressor.with_header(packed, &mut self.plain),
        }
        .map_err(UnpackError::Compression)?;
        Ok(Unpacked { address, is_packed: true })
    }

    /// The data of the record that was unpacked last, as it was read from the file.
    pub(crate) fn data<'a>(&'a self, unpacked: &Unpacked, record: &'a [u8]) -> &'a [u8] {
        let begin = if unpacked.address.is_some() { size_of::<u64>() } else { 0 };
        if unpacked.is_packed { &self.plain } else { record.get(begin..).unwrap_or_default() }
    }
}
