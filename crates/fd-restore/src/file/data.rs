//! From a data record to bytes in the file: address, decompression, digest, Windows parts, write (reference 05 §7).
//!
//! A plain record goes from the frame that it came in straight to the write.

use fd_compress::{DecompressError, Decompressor};
use fd_messages::{MessageType, Progress};
use fd_records::Stream;

use crate::digests::DigestCheck;
use crate::file::OutputFile;
use crate::report::Report;
use crate::stream::Win32Stream;
use crate::texts::{self, FailedWrite};

/// Undoes what was done to the data of a file, and writes it.
pub(crate) struct DataPath {
    unpacker: Unpacker,
    win32: Win32Stream,
}

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

/// A record could not be written; the operator knows why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DataLost;

/// The file that data goes to.
pub(crate) struct Destination<'a> {
    pub(crate) file: &'a mut OutputFile,
    pub(crate) path: &'a [u8],
    /// Whether it is a patch.
    pub(crate) is_delta: bool,
    /// How long its attributes say that it is.
    pub(crate) recorded: i64,
    /// How many bytes of data it may have, and up to which address; `None` if nothing tells.
    pub(crate) most: Option<u64>,
}

impl Destination<'_> {
    /// Writes the next bytes; the error is what to say.
    fn write(&mut self, data: &[u8], failed: impl Fn(&FailedWrite, &[u8]) -> Vec<u8>) -> Result<(), Vec<u8>> {
        if let Some(most) = self.most.filter(|most| self.file.reach_with(data.len()) > *most) {
            return Err(texts::too_much_data(self.path, self.recorded, most));
        }
        self.file.write(data).map_err(|error| failed(&error, self.path))
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

impl DataPath {
    pub(crate) fn new() -> Self {
        Self { unpacker: Unpacker::new(), win32: Win32Stream::default() }
    }

    /// Another file begins.
    pub(crate) fn begin(&mut self) {
        self.win32 = Win32Stream::default();
    }

    /// Writes one record, or one block of encrypted data once it is decrypted.
    pub(crate) fn record(
        &mut self,
        stream: Stream,
        record: &[u8],
        destination: &mut Destination<'_>,
        digest: &mut DigestCheck,
        progress: &Progress,
        report: &mut Report<'_>,
    ) -> Result<(), DataLost> {
        let layout = Layout::of(stream, destination.is_delta);
        let path = destination.path;
        let unpacked = self.unpacker.unpack(layout, record);
        let (address, data) = match unpacked {
            Ok(unpacked) => (unpacked.address, unpacked.data),
            Err(UnpackError::ShortAddress) => {
                report.now(MessageType::Error, &texts::short_address(path, record.len()));
                return Err(DataLost);
            }
            Err(UnpackError::Compression(error)) => {
                report.later(MessageType::Error, texts::decompression(&error, path));
                return Err(DataLost);
            }
        };
        if let Some(address) = address
            && let Err(errno) = destination.file.go_to(address)
        {
            report.now(MessageType::Error, &texts::seek_failed(address, path, errno));
            return Err(DataLost);
        }
        let in_order = address.is_none() && !layout.is_win32;
        if digest.must_catch_up(data.len(), in_order) {
            digest.catch_up(|take| destination.file.read_again(take));
        }
        digest.update(data, in_order);
        let written = if layout.is_win32 {
            write_win32(&mut self.win32, data, destination)
        } else {
            destination.write(data, texts::write_failed)
        };
        match written {
            Ok(()) => {
                progress.add_job_bytes(data.len() as u64);
                Ok(())
            }
            Err(text) => {
                report.now(MessageType::Error, &text);
                Err(DataLost)
            }
        }
    }
}

fn write_win32(parts: &mut Win32Stream, data: &[u8], destination: &mut Destination<'_>) -> Result<(), Vec<u8>> {
    let mut rest = data;
    while let Some(piece) = parts.next_data(&mut rest) {
        destination.write(piece, |failed, path| texts::windows_write_failed(path, failed.errno))?;
    }
    Ok(())
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
