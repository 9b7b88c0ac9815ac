//! Compares the data of files with the catalog's digests (reference 04 §13.4, §13.5).

use std::os::fd::AsFd;
use std::time::Instant;

use fd_crypto::Digesters;
use fd_messages::MessageType;
use fd_records::{DigestKind, DigestValue, FileType};
use fd_walk::{Entry, HardLink, Identity};
use rustix::io::Errno;

use crate::accurate::{AccurateList, OnEqualData, Token};
use crate::exchange::Stopped;
use crate::exchange::piece::Event;
use crate::file::blocks::{Cut, DataEnd, Scratch, read_blocks};
use crate::file::fate::{Fate, Prepared};
use crate::source::{OpenLimits, Opened, Source, open_regular};
use crate::texts;

/// Compares files with the catalog.
pub(crate) struct Comparer<'v> {
    pub(crate) list: Option<&'v AccurateList>,
    pub(crate) digesters: &'v mut Digesters,
    /// A buffer for blocks.
    pub(crate) block: &'v mut Vec<u8>,
    /// Called before each block is read.
    pub(crate) before_each: &'v mut dyn FnMut(),
    pub(crate) record_len: usize,
    /// The job encrypts. Then no block is left out of the data and its digest, whatever the Options
    /// say (reference 04 §7).
    pub(crate) encrypts: bool,
    pub(crate) open_limits: OpenLimits<'v>,
}

impl Comparer<'_> {
    /// Compares the data of an entry if only its data decides whether it is saved:
    /// [`Fate::InItsTurn`] if it is to be saved with its data.
    pub(crate) fn examine(&mut self, entry: &Entry) -> Result<Prepared, Stopped> {
        let mut prepared = Prepared::from(Fate::InItsTurn);
        let token = entry.token.map(Token::decode).filter(|token| token.needs_data());
        let (Some(list), Some(token)) = (self.list, token) else { return Ok(prepared) };
        if token.on_equal_data == OnEqualData::Update && matches!(entry.hard_link, Some(HardLink::Later { .. })) {
            // It is a link to the name that has the data, and has none itself.
            return Ok(prepared);
        }
        let Some(expected) = list.digest(token) else {
            if list.expects_digests() {
                let text = texts::cannot_verify(&entry.path);
                prepared.events.push(Event::Message { kind: MessageType::Warning, text, failed: false });
            }
            return Ok(prepared);
        };
        let Some(kind) = entry.options.digest else { return Ok(prepared) };
        let found = self.digest(entry, kind, &mut prepared)?;
        if found.is_some_and(|found| found.as_bytes() == expected) {
            match token.on_equal_data {
                OnEqualData::Skip => {
                    list.data_unchanged(token, &entry.stat);
                    prepared.fate = Fate::Unchanged;
                }
                OnEqualData::Update => prepared.fate = Fate::Update(expected),
                OnEqualData::Save => {}
            }
        }
        Ok(prepared)
    }

    /// The digest of the data; `None` after an error, which is reported.
    fn digest(
        &mut self,
        entry: &Entry,
        kind: DigestKind,
        prepared: &mut Prepared,
    ) -> Result<Option<DigestValue>, Stopped> {
        let Ok(digester) = self.digesters.ready(kind) else { return Ok(None) };
        let each = |data: &[u8]| {
            digester.update(data);
            prepared.read_bytes += data.len() as u64;
        };
        let sparse = entry.options.is_sparse(self.encrypts);
        let blocks = Blocks { buffer: self.block, before_each: self.before_each, record_len: self.record_len, sparse };
        let error = match read_file(entry, blocks, self.open_limits, each)? {
            Ok((DataEnd::Complete, Identity::Unchanged)) => return Ok(digester.finish().ok()),
            // The file that the walk compared with the list has changed since.
            Ok((DataEnd::Complete, _)) | Err(Errno::STALE) => None,
            Ok((DataEnd::ReadError(errno), _)) => Some((texts::cannot_read_to_verify(&entry.path, errno), false)),
            Err(errno) => Some((texts::cannot_open_to_verify(&entry.path, errno), true)),
        };
        digester.restart();
        prepared.events.extend(error.map(|(text, failed)| Event::Message { kind: MessageType::Error, text, failed }));
        Ok(None)
    }
}

/// How a file is cut into blocks.
pub(crate) struct Blocks<'b> {
    /// A buffer for one.
    pub(crate) buffer: &'b mut Vec<u8>,
    /// Called before each of them is read.
    pub(crate) before_each: &'b mut dyn FnMut(),
    /// Bytes of a full record.
    pub(crate) record_len: usize,
    /// Blocks have addresses, and those of zeros are left out.
    pub(crate) sparse: bool,
}

/// Reads a file as a backup does, without saving it: passes its blocks to `each` and compares the
/// file with the one of the walk. A file of size 0 is not opened. The inner error is that of
/// opening it; `ESTALE` for another file.
pub(crate) fn read_file(
    entry: &Entry,
    blocks: Blocks<'_>,
    open_limits: OpenLimits<'_>,
    mut each: impl FnMut(&[u8]),
) -> Result<Result<(DataEnd, Identity), Errno>, Stopped> {
    let Blocks { buffer, before_each, record_len, sparse } = blocks;
    if entry.stat.size <= 0 {
        return Ok(Ok((DataEnd::Complete, Identity::Unchanged)));
    }
    let begun = Instant::now();
    let file = match open_regular(entry, open_limits) {
        Ok(file) => file,
        Err(errno) => return Ok(Err(errno)),
    };
    let (identity, stat) = match entry.identify(file.as_fd()) {
        Ok((Identity::Replaced, _)) => return Ok(Err(Errno::STALE)),
        Ok(found) => found,
        Err(errno) => return Ok(Err(errno)),
    };
    let mut source = Source::new(Opened::new(file, begun.elapsed()), FileType::Regular, &stat);
    let cut = Cut::new(FileType::Regular, &stat, sparse, record_len);
    let each = |_, data: &[u8]| {
        each(data);
        Ok::<(), Stopped>(())
    };
    let mut intake = Scratch { block: buffer, before_each, each };
    let end = read_blocks(&mut source, &cut, open_limits.is_stopped, &mut intake)?;
    Ok(Ok((end, identity)))
}
