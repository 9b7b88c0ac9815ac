//! From a data record to bytes in the file: unpacked, digested, taken out of Windows parts, written (reference 05 §7).
//!
//! A plain record goes from the frame that it came in straight to the write.

use fd_messages::{MessageType, Progress};
use fd_records::Stream;

use crate::digests::DigestCheck;
use crate::output_file::OutputFile;
use crate::report::Report;
use crate::stream::{UnpackError, Unpacker, Win32Stream};
use crate::texts::{self, FailedWrite};

/// Undoes what was done to the data of a file, and writes it.
pub(crate) struct DataPath {
    unpacker: Unpacker,
    win32: Win32Stream,
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
        let mut layout = stream.layout();
        // The patches of a delta are not in parts.
        layout.is_win32 &= !(destination.is_delta && stream.has(Stream::BIT_OFFSETS));
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
        digest.update(data, in_order, destination.file);
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
