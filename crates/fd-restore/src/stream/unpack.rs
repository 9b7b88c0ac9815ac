//! From a data record to the data: its address and its decompression (reference 05 §7.1, §7.2).

use fd_compress::{DecompressError, Decompressor};
use fd_records::Stream;

/// Undoes what was done to one record.
pub(crate) struct Unpacker {
    decompressor: Decompressor,
    plain: Vec<u8>,
}

/// The data of a record.
pub(crate) struct Unpacked<'a> {
    /// Where it stands in the file, if the record says so.
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

    pub(crate) fn unpack<'a>(&'a mut self, layout: Layout, record: &'a [u8]) -> Result<Unpacked<'a>, UnpackError> {
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

/// What a stream number says about its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    has_address: bool,
    packing: Packing,
    /// Whether the data is in parts, see [`Win32Stream`].
    pub(crate) is_win32: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packing {
    Plain,
    Zlib,
    WithHeader,
}

impl Layout {
    pub(crate) fn of(stream: Stream, is_delta: bool) -> Self {
        let offsets = stream.has(Stream::BIT_OFFSETS);
        let kind = stream.kind().0;
        Self {
            has_address: offsets || matches!(kind, 6 | 7 | 30),
            packing: match kind {
                4 | 7 | 12 | 23 | 24 => Packing::Zlib,
                29..=33 => Packing::WithHeader,
                _ => Packing::Plain,
            },
            is_win32: matches!(kind, 11 | 12 | 21 | 24 | 31 | 33) && !(offsets && is_delta),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_reference() {
        let having = |wanted: fn(&Layout) -> bool| -> Vec<u32> {
            (0..2048).filter(|kind| wanted(&Layout::of(Stream(*kind), false))).collect()
        };
        assert_eq!(having(|layout| layout.has_address), [6, 7, 30]);
        assert_eq!(having(|layout| layout.packing == Packing::Zlib), [4, 7, 12, 23, 24]);
        assert_eq!(having(|layout| layout.packing == Packing::WithHeader), [29, 30, 31, 32, 33]);
        assert_eq!(having(|layout| layout.is_win32), [11, 12, 21, 24, 31, 33]);
        let offsets = Stream(Stream::BIT_OFFSETS | Stream::WIN32_DATA.0);
        assert!(Layout::of(offsets, false).has_address && Layout::of(offsets, false).is_win32);
        assert!(!Layout::of(offsets, true).is_win32);
    }
}
