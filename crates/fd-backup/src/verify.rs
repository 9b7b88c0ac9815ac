//! Whether a file's data is what the catalog's digest says (reference 04 §13.4, §13.5).

use fd_crypto::{DigestKind, Digester};
use fd_fileset::Flags;
use fd_messages::MessageType;
use fd_records::FileType;
use fd_walk::Entry;
use nix::errno::Errno;

use crate::accurate::{AccurateList, CatalogDigest, OnEqualData, Token};
use crate::data::{Cut, DataEnd, read_blocks};
use crate::exchange::Stopped;
use crate::intake::Scratch;
use crate::piece::Event;
use crate::source::{Opening, Source};
use crate::texts;
use crate::tools::{Tools, digest_kind};

/// What comparing its data decided about an entry.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is saved.
    Save,
    /// It is unchanged, and not saved.
    Skip,
    /// Only its attributes are sent, with this digest of the catalog.
    Update(Vec<u8>),
}

/// A verdict, and what is to be told and counted along with it.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    pub(crate) events: Vec<Event>,
    pub(crate) read_bytes: u64,
}

/// Compares files with the catalog.
pub(crate) struct Verifier<'v> {
    pub(crate) list: &'v AccurateList,
    pub(crate) tools: &'v mut Tools,
    /// Room for a block.
    pub(crate) block: &'v mut Vec<u8>,
    pub(crate) record_len: usize,
    pub(crate) is_stopped: &'v dyn Fn() -> bool,
}

impl Verifier<'_> {
    /// Reads the entry's data where that is needed, and compares.
    pub(crate) fn examine(&mut self, entry: &Entry, token: Token) -> Result<Finding, Stopped> {
        let mut finding = Finding { verdict: Verdict::Save, events: Vec::new(), read_bytes: 0 };
        let expected = match self.list.digest(token) {
            CatalogDigest::Bytes(bytes) => bytes,
            CatalogDigest::Missing => {
                if self.list.expects_digests() {
                    let text = texts::cannot_verify(&entry.path);
                    finding.events.push(Event::Message { kind: MessageType::Warning, text, failed: false });
                }
                return Ok(finding);
            }
        };
        let Some(kind) = entry.options.digest.map(digest_kind) else { return Ok(finding) };
        if self.tools.prepare_digest(kind).is_err() || !self.digest(entry, kind, &mut finding)? {
            return Ok(finding);
        }
        let found = self.tools.finish_digest(kind).ok();
        if found.is_some_and(|found| found.as_bytes() == expected) {
            finding.verdict = match token.on_equal_data {
                OnEqualData::Skip => Verdict::Skip,
                OnEqualData::Update => Verdict::Update(expected),
                OnEqualData::DoNotAsk => Verdict::Save,
            };
        }
        if matches!(finding.verdict, Verdict::Skip) {
            self.list.data_unchanged(token, &entry.stat);
        }
        Ok(finding)
    }

    /// Digests the data; `false` if it can't be had.
    fn digest(&mut self, entry: &Entry, kind: DigestKind, finding: &mut Finding) -> Result<bool, Stopped> {
        let Some(digester) = self.tools.digester(kind) else { return Ok(false) };
        let mut reading = Reading {
            digester,
            block: self.block,
            record_len: self.record_len,
            is_stopped: self.is_stopped,
            count: &mut |bytes| finding.read_bytes += bytes,
        };
        match reading.digest(entry)? {
            Ok(DataEnd::Complete) => Ok(true),
            Ok(DataEnd::ReadError(errno)) => {
                Digester::restart(digester);
                let text = texts::cannot_read_to_verify(&entry.path, errno);
                finding.events.push(Event::Message { kind: MessageType::Error, text, failed: false });
                Ok(false)
            }
            Err(errno) => {
                let text = texts::cannot_open_to_verify(&entry.path, errno);
                finding.events.push(Event::Message { kind: MessageType::Error, text, failed: true });
                Ok(false)
            }
        }
    }
}

/// Digests files as a backup does, without saving them.
pub(crate) struct Reading<'r> {
    pub(crate) digester: &'r mut Digester,
    /// Room for a block.
    pub(crate) block: &'r mut Vec<u8>,
    pub(crate) record_len: usize,
    pub(crate) is_stopped: &'r dyn Fn() -> bool,
    /// Is told how many bytes were read and digested, block by block.
    pub(crate) count: &'r mut dyn FnMut(u64),
}

impl Reading<'_> {
    /// Adds the entry's data to the digest. A file of no size is not even opened. The inner error says why it could not
    /// be.
    pub(crate) fn digest(&mut self, entry: &Entry) -> Result<Result<DataEnd, Errno>, Stopped> {
        if entry.stat.size <= 0 {
            return Ok(Ok(DataEnd::Complete));
        }
        let options = &entry.options;
        let opening = Opening {
            file_type: FileType::Regular,
            size: entry.stat.size,
            device: entry.stat.dev,
            no_atime: options.has(Flags::NO_ATIME),
            fifo_timeout: std::time::Duration::ZERO,
        };
        let mut source = match Source::open(&entry.path, opening, self.is_stopped) {
            Ok(source) => source,
            Err(errno) => return Ok(Err(errno)),
        };
        let cut = Cut::new(FileType::Regular, &entry.stat, options.has(Flags::SPARSE), self.record_len);
        let (digester, count) = (&mut *self.digester, &mut *self.count);
        let each = |_, block: &[u8]| {
            digester.update(block);
            count(block.len() as u64);
            Ok::<(), Stopped>(())
        };
        let mut intake = Scratch { block: self.block, each };
        Ok(Ok(read_blocks(&mut source, &cut, self.is_stopped, &mut intake)?))
    }
}
