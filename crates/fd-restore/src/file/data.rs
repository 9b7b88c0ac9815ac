//! From a data record to bytes in the file: decrypted, unpacked, digested, taken out of Windows
//! parts, written (reference 05 §7).
//!
//! A plain record goes from the frame that it came in straight to the write.

use fd_messages::{MessageType, Progress};
use fd_records::{DataLayout, Stream};

use super::encryption::{DataLost, Encryption};
use super::item::RestoreItem;
use crate::created::Taker;
use crate::digests::DigestCheck;
use crate::plugins::CurrentPlugin;
use crate::report::Report;
use crate::stream::{UnpackError, Unpacked, Unpacker, Win32Stream};
use crate::texts::{self, FailedWrite};

/// Undoes what was done to the data of a file, and writes it.
pub(crate) struct DataPath {
    unpacker: Unpacker,
    win32: Win32Stream,
}

/// A record when it is known that its data can be restored, as far as it tells.
pub(crate) enum Examined {
    /// It is unpacked.
    Unpacked(Unpacked),
    /// It is decrypted.
    Decrypted,
}

/// What takes the data of a file, and what that involves.
pub(crate) struct Destination<'a, 'r, 'j> {
    pub(crate) taker: &'a mut Taker,
    /// The plugin that restores the records.
    pub(crate) plugin: Option<&'a mut CurrentPlugin<'j>>,
    pub(crate) item: &'a RestoreItem,
    pub(crate) digest: &'a mut DigestCheck,
    pub(crate) progress: &'a Progress,
    pub(crate) report: &'a mut Report<'r>,
}

impl Destination<'_, '_, '_> {
    /// Writes the next bytes; the error is the message, if there is one.
    fn write(&mut self, data: &[u8], failed: impl Fn(&FailedWrite, &[u8]) -> Vec<u8>) -> Result<(), Option<Vec<u8>>> {
        let name = &self.item.output;
        let file = match (&mut *self.taker, &mut self.plugin) {
            (Taker::File(file), _) => file,
            (Taker::Plugin { address }, Some(plugin)) => {
                return plugin.write(data, address, self.report, |error| failed(error, name));
            }
            (Taker::Finished(_) | Taker::Plugin { .. }, _) => return Ok(()),
        };
        if let Some(most) = self.item.most_data().filter(|most| file.reach_with(data.len()) > *most) {
            return Err(Some(texts::too_much_data(name, self.item.stat.size, most)));
        }
        file.write(data).map_err(|error| Some(failed(&error, name)))
    }

    /// The next data goes to this address; the error is the message, if there is one.
    fn go_to(&mut self, address: u64) -> Result<(), Option<Vec<u8>>> {
        let name = &self.item.output;
        match (&mut *self.taker, &mut self.plugin) {
            (Taker::File(file), _) => {
                let has_zeros = self.item.needs_its_zeros();
                let end = if has_zeros { Some(file.address()) } else { file.end() };
                match end.filter(|end| address < *end) {
                    Some(end) => Err(Some(texts::address_goes_back(name, address, end))),
                    None if has_zeros => {
                        file.fill_to(address).map_err(|failed| Some(texts::write_failed(&failed, name)))
                    }
                    None => file.go_to(address).map_err(|errno| Some(texts::seek_failed(address, name, errno))),
                }
            }
            (Taker::Plugin { address: at }, Some(plugin)) => plugin.go_to(address, at, name, self.report),
            (Taker::Finished(_) | Taker::Plugin { .. }, _) => Ok(()),
        }
    }

    /// Takes the next bytes of a file as they are.
    pub(crate) fn take(&mut self, data: &[u8]) -> Result<(), DataLost> {
        self.digest.update(data, true, self.taker.file());
        let written = self.write(data, texts::write_failed);
        self.count(data, written)
    }

    /// Counts what was written, or reports why it can't be.
    fn count(&mut self, data: &[u8], written: Result<(), Option<Vec<u8>>>) -> Result<(), DataLost> {
        written.map_err(|text| self.lose(text.as_deref()))?;
        self.progress.add_job_bytes(data.len() as u64);
        Ok(())
    }

    /// Reports why data can't be written.
    fn lose(&mut self, text: Option<&[u8]>) -> DataLost {
        if let Some(text) = text {
            self.report.now(MessageType::Error, text);
        }
        DataLost
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

    /// Decrypts or unpacks a record of the file whose data comes. Fails if it shows that its data
    /// can't be restored.
    pub(crate) fn examine(
        &mut self,
        stream: Stream,
        record: &[u8],
        encryption: &mut Encryption,
        path: &[u8],
        report: &mut Report<'_>,
    ) -> Result<Examined, DataLost> {
        let layout = stream.layout();
        if layout.is_encrypted {
            encryption.record(stream, record, path, report).map(|()| Examined::Decrypted)
        } else {
            unpack(&mut self.unpacker, layout, record, path, report).map(Examined::Unpacked)
        }
    }

    /// Writes the data of one record, which may be examined.
    pub(crate) fn record(
        &mut self,
        stream: Stream,
        record: &[u8],
        examined: Option<Examined>,
        encryption: &mut Encryption,
        to: &mut Destination<'_, '_, '_>,
    ) -> Result<(), DataLost> {
        let examined = match examined {
            Some(examined) => examined,
            None => self.examine(stream, record, encryption, &to.item.output, to.report)?,
        };
        match examined {
            Examined::Unpacked(unpacked) => self.write(stream, record, &unpacked, to),
            Examined::Decrypted => self.write_decrypted(encryption, to),
        }
    }

    /// All records have come: writes what the cipher's last block contains. Fails if it is known
    /// that data is missing.
    pub(crate) fn end(
        &mut self,
        encryption: &mut Encryption,
        to: &mut Destination<'_, '_, '_>,
    ) -> Result<(), DataLost> {
        if let Some(finished) = encryption.finish(&to.item.output, to.report) {
            self.write_decrypted(encryption, to)?;
            encryption.check_rest(&to.item.output, to.report)?;
            finished?;
        }
        if std::mem::take(&mut self.win32).is_torn() {
            return Err(to.lose(Some(&texts::windows_data_torn(&to.item.output))));
        }
        Ok(())
    }

    /// Writes the blocks that have been decrypted.
    fn write_decrypted(
        &mut self,
        encryption: &mut Encryption,
        to: &mut Destination<'_, '_, '_>,
    ) -> Result<(), DataLost> {
        let stream = encryption.stream();
        while let Some(block) = encryption.next_block(&to.item.output, to.report)? {
            let unpacked = unpack(&mut self.unpacker, stream.layout(), block, &to.item.output, to.report)?;
            self.write(stream, block, &unpacked, to)?;
        }
        Ok(())
    }

    /// Writes one record, or one block of encrypted data once it is decrypted.
    fn write(
        &mut self,
        stream: Stream,
        record: &[u8],
        unpacked: &Unpacked,
        to: &mut Destination<'_, '_, '_>,
    ) -> Result<(), DataLost> {
        let mut layout = stream.layout();
        // The patches of a delta are not in parts.
        layout.is_win32 &= !(to.item.delta_seq > 0 && stream.has(Stream::BIT_OFFSETS));
        if let Some(address) = unpacked.address
            && let Err(text) = to.go_to(address)
        {
            return Err(to.lose(text.as_deref()));
        }
        let data = self.unpacker.data(unpacked, record);
        to.digest.update(data, unpacked.address.is_none() && !layout.is_win32, to.taker.file());
        let written =
            if layout.is_win32 { write_win32(&mut self.win32, data, to) } else { to.write(data, texts::write_failed) };
        to.count(data, written)
    }
}

/// Unpacks a record, or reports why it can't be.
fn unpack(
    unpacker: &mut Unpacker,
    layout: DataLayout,
    record: &[u8],
    path: &[u8],
    report: &mut Report<'_>,
) -> Result<Unpacked, DataLost> {
    unpacker.unpack(layout, record).map_err(|error| {
        match error {
            UnpackError::ShortAddress => report.now(MessageType::Error, &texts::short_address(path, record.len())),
            UnpackError::Compression(error) => report.later(MessageType::Error, texts::decompression(&error, path)),
        }
        DataLost
    })
}

fn write_win32(
    parts: &mut Win32Stream,
    mut data: &[u8],
    to: &mut Destination<'_, '_, '_>,
) -> Result<(), Option<Vec<u8>>> {
    while let Some(piece) = parts.next_data(&mut data) {
        to.write(piece, |failed, path| texts::windows_write_failed(path, failed.errno))?;
    }
    Ok(())
}
