//! Reads a volume of the Storage Daemon record by record (reference 04 Appendix A, layouts BB03 and
//! BB02),
//! independent of the product's own code: every block's checksum is verified and split records are
//! put together again.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use xxhash_rust::xxh3::Xxh3;

use crate::error::{BedError, Result};

/// `VolSessionId` and `VolSessionTime`.
pub type Session = (u32, u32);

/// One record as a File Daemon sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The session that it belongs to.
    pub session: Session,
    /// `FileIndex`, positive.
    pub file_index: i32,
    /// Stream number with its high bits.
    pub stream: i32,
    /// Its bytes.
    pub data: Vec<u8>,
    /// Where its header begins in the volume, bytes.
    pub offset: u64,
}

/// Offsets of the fields in a block header.
const BLOCK_HEADER: usize = 32;
const RECORD_HEADER: usize = 12;
const IDENTIFIER: &[u8; 4] = b"BB03";
const CHECKSUM_AT: usize = 24;
/// What 9.6.7 writes: its checksum takes the place of the options word.
const OLD_IDENTIFIER: &[u8; 4] = b"BB02";
const OLD_BLOCK_HEADER: usize = CHECKSUM_AT;
/// Labels take the place of records, with these file indexes.
const START_OF_SESSION: i32 = -4;
const END_OF_SESSION: i32 = -5;
/// A label's text; behind it version and `JobId`, then the time in microseconds.
const LABEL_START: &[u8] = b"Bacula 1.0 immortal\n\0";
const LABEL_TIME_AT: usize = 8;
/// Bit 0 of the options word: the block carries a checksum. Any other bit means encryption, which
/// the bed never uses.
const WITH_CHECKSUM: u32 = 1;
/// Bacula's largest possible block; a length above it is damage.
const LARGEST_BLOCK: usize = 20_000_000;

/// The records of one or more volumes written one after the other; label records are left out.
#[derive(Debug)]
pub struct Records {
    volumes: VecDeque<PathBuf>,
    current: Option<Volume>,
    wanted: Option<Session>,
    partial: HashMap<Session, Partial>,
    ready: VecDeque<Record>,
    failed: bool,
    begun: Option<u64>,
    ended: Option<u64>,
}

/// A volume that is being read.
#[derive(Debug)]
struct Volume {
    path: PathBuf,
    reader: BufReader<File>,
    offset: u64,
}

/// A block whose checksum was right.
struct Block {
    /// Where its first record begins, bytes.
    offset: u64,
    session: Session,
    body: Vec<u8>,
}

/// A record whose end is in a later block.
#[derive(Debug)]
struct Partial {
    record: Record,
    missing: usize,
}

impl Records {
    /// Reads the given volumes in order, only the records of one session when one is given.
    pub fn new(volumes: Vec<PathBuf>, wanted: Option<Session>) -> Result<Self> {
        if volumes.is_empty() {
            return Err(BedError::Usage("no volume to read".to_owned()));
        }
        Ok(Self {
            volumes: volumes.into(),
            current: None,
            wanted,
            partial: HashMap::new(),
            ready: VecDeque::new(),
            failed: false,
            begun: None,
            ended: None,
        })
    }

    /// How long the Storage Daemon says that the session took, from its label at the start to that
    /// at the end; known when all records have been read.
    pub fn elapsed(&self) -> Option<Duration> {
        Some(Duration::from_micros(self.ended?.checked_sub(self.begun?)?))
    }

    /// The next record, read from as many blocks as it takes.
    fn advance(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(record));
            }
            let Some(volume) = &mut self.current else {
                let Some(path) = self.volumes.pop_front() else {
                    return self.ended();
                };
                let file = File::open(&path).map_err(BedError::file("open", &path))?;
                self.current = Some(Volume { path, reader: BufReader::with_capacity(1 << 17, file), offset: 0 });
                continue;
            };
            match volume.block()? {
                Some(block) => {
                    let path = volume.path.clone();
                    if self.wanted.is_none_or(|wanted| wanted == block.session) {
                        self.take(&path, &block)?;
                    }
                }
                None => self.current = None,
            }
        }
    }

    /// The end of the last volume: no record may be cut off there.
    fn ended(&mut self) -> Result<Option<Record>> {
        match self.partial.drain().next() {
            None => Ok(None),
            Some((session, partial)) => {
                Err(BedError::Usage(format!("the volumes end inside a record of session {session:?}: {partial:?}")))
            }
        }
    }

    /// Takes the time out of a session's labels (reference 04 §19.3).
    fn note_label(&mut self, file_index: i32, bytes: &[u8]) {
        let time = || {
            let bytes = bytes.strip_prefix(LABEL_START)?.get(LABEL_TIME_AT..LABEL_TIME_AT + 8)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        match file_index {
            START_OF_SESSION => self.begun = self.begun.or_else(time),
            END_OF_SESSION => self.ended = time(),
            _ => {}
        }
    }

    /// Takes the records out of a block.
    fn take(&mut self, path: &Path, block: &Block) -> Result<()> {
        let mut at = 0;
        // Fewer bytes than a header at the end mean that the next record begins in the next block.
        while block.body.len() - at >= RECORD_HEADER {
            let offset = block.offset + at as u64;
            let problem = |problem: String| BedError::Volume { volume: path.to_owned(), offset, problem };
            let [file_index, stream, length] = [0, 4, 8].map(|field| i32::from_be_bytes(word(&block.body, at + field)));
            at += RECORD_HEADER;
            let length = usize::try_from(length).map_err(|_| problem(format!("record length {length}")))?;
            let here = length.min(block.body.len() - at);
            let bytes = block.body.get(at..at + here).unwrap_or_default();
            at += here;
            if file_index <= 0 {
                self.note_label(file_index, bytes);
                continue;
            }
            let partial = if stream < 0 {
                let mut begun = self.partial.remove(&block.session);
                let fits = |partial: &Partial| {
                    (partial.record.file_index, -partial.record.stream, partial.missing) == (file_index, stream, length)
                };
                let Some(partial) = begun.as_mut().filter(|partial| fits(partial)) else {
                    let got = format!("FileIndex {file_index} stream {stream}, {length} bytes");
                    return Err(problem(format!("continuation of {got} does not continue {begun:?}")));
                };
                partial.record.data.extend_from_slice(bytes);
                partial.missing -= here;
                begun
            } else {
                let record = Record { session: block.session, file_index, stream, data: bytes.to_vec(), offset };
                Some(Partial { record, missing: length - here })
            };
            match partial {
                Some(partial) if partial.missing == 0 => self.ready.push_back(partial.record),
                Some(partial) => drop(self.partial.insert(block.session, partial)),
                None => {}
            }
        }
        Ok(())
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance();
        self.failed = next.is_err();
        next.transpose()
    }
}

impl Volume {
    /// The next block, or `None` at the end of the volume.
    fn block(&mut self) -> Result<Option<Block>> {
        let mut bytes = Vec::new();
        let mut start = self.reader.by_ref().take(OLD_BLOCK_HEADER as u64);
        let got = start.read_to_end(&mut bytes).map_err(BedError::file("read", &self.path))?;
        if got == 0 {
            return Ok(None);
        }
        if got < OLD_BLOCK_HEADER {
            return Err(self.problem(format!("{got} bytes where a block header must stand")));
        }
        let number = |at| u32::from_be_bytes(word(&bytes, at));
        let (options, length, session) = (number(0), number(4) as usize, (number(16), number(20)));
        let header = match &word(&bytes, 12) {
            IDENTIFIER => BLOCK_HEADER,
            OLD_IDENTIFIER => OLD_BLOCK_HEADER,
            other => return Err(self.problem(format!("expected block identifier BB03 or BB02, got {other:?}"))),
        };
        let good_options = header == OLD_BLOCK_HEADER || options == WITH_CHECKSUM;
        if !good_options || !(header..=LARGEST_BLOCK).contains(&length) {
            return Err(self.problem(format!("block options {options:#x}, length {length}")));
        }
        // Zeros that are read over would be written one by one in a build without optimization.
        let mut rest = self.reader.by_ref().take((length - OLD_BLOCK_HEADER) as u64);
        rest.read_to_end(&mut bytes).map_err(BedError::file("read", &self.path))?;
        if bytes.len() < length {
            return Err(self.problem(format!("{} bytes of a block of {length}", bytes.len())));
        }
        let body = bytes.split_off(header);
        self.check(&bytes, &body)?;
        let offset = self.offset + header as u64;
        self.offset += length as u64;
        Ok(Some(Block { offset, session, body }))
    }

    /// The checksum in a block's header must be that of the block.
    fn check(&self, header: &[u8], body: &[u8]) -> Result<()> {
        let (has, says) = if header.len() == OLD_BLOCK_HEADER {
            let mut crc = flate2::Crc::new();
            crc.update(header.get(4..).unwrap_or_default());
            crc.update(body);
            (u64::from(crc.sum()), u64::from(u32::from_be_bytes(word(header, 0))))
        } else {
            let mut hash = Xxh3::new();
            hash.update(header.get(..CHECKSUM_AT).unwrap_or_default());
            hash.update(&[0; 8]);
            hash.update(body);
            let half = |at| u64::from(u32::from_be_bytes(word(header, at)));
            (hash.digest(), half(CHECKSUM_AT) << 32 | half(CHECKSUM_AT + 4))
        };
        if has == says { Ok(()) } else { Err(self.problem(format!("checksum {has:016x}, but it says {says:016x}"))) }
    }

    fn problem(&self, problem: String) -> BedError {
        BedError::Volume { volume: self.path.clone(), offset: self.offset, problem }
    }
}

/// Changes a volume in place: `change` gets each record that is whole in one block, labels
/// included, with its session, its file index, its stream and its bytes. Checksums are made again,
/// so that the Storage Daemon sends what it finds.
pub fn rewrite_volume(path: &Path, mut change: impl FnMut(Session, i32, &mut i32, &mut [u8])) -> Result<()> {
    let mut bytes = std::fs::read(path).map_err(BedError::file("read", path))?;
    let mut rest = bytes.as_mut_slice();
    while rest.len() >= BLOCK_HEADER {
        let length = u32::from_be_bytes(word(rest, 4)) as usize;
        let problem = || BedError::Usage(format!("{}: a block of {length} bytes", path.display()));
        let (block, behind) = rest.split_at_mut_checked(length).ok_or_else(problem)?;
        let session = (u32::from_be_bytes(word(block, 16)), u32::from_be_bytes(word(block, 20)));
        let mut records = block.get_mut(BLOCK_HEADER..).ok_or_else(problem)?;
        while let Some((head, data)) = records.split_at_mut_checked(RECORD_HEADER) {
            let [file_index, mut stream, length] = [0, 4, 8].map(|at| i32::from_be_bytes(word(head, at)));
            let Some((record, behind)) = usize::try_from(length).ok().and_then(|len| data.split_at_mut_checked(len))
            else {
                break;
            };
            change(session, file_index, &mut stream, record);
            put(head, 4, &stream.to_be_bytes());
            records = behind;
        }
        put(block, CHECKSUM_AT, &[0; 8]);
        let checksum = xxhash_rust::xxh3::xxh3_64(block);
        put(block, CHECKSUM_AT, &checksum.to_be_bytes());
        rest = behind;
    }
    std::fs::write(path, bytes).map_err(BedError::file("write", path))
}

/// Four bytes of a buffer that is known to hold them.
fn word(bytes: &[u8], at: usize) -> [u8; 4] {
    let mut word = [0; 4];
    if let Some(slice) = bytes.get(at..at + 4) {
        word.copy_from_slice(slice);
    }
    word
}

/// Puts bytes into a buffer that is known to have room for them.
fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(slice) = bytes.get_mut(at..at + what.len()) {
        slice.copy_from_slice(what);
    }
}

/// The name of a stream as `bls` prints it (reference 04 §19.4).
pub fn stream_name(stream: i32) -> String {
    let name = match stream & 0x7ff {
        1 => "UATTR",
        2 => "DATA",
        3 => "MD5",
        4 => "GZIP",
        6 => "SPARSE-DATA",
        7 => "SPARSE-GZIP",
        10 => "SHA1",
        17 => "SHA256",
        18 => "SHA512",
        19 => "SIGNED-DIGEST",
        20 => "ENCRYPTED-FILE",
        22 => "ENCRYPTED-SESSION-DATA",
        26 => "PLUGIN-NAME",
        29 => "COMPRESSED",
        30 => "SPARSE-COMPRESSED",
        39 => "XXHASH64",
        41 => "XXH3_128",
        1007 => "DEFAULT-ACL",
        1008 => "ACCESS-ACL",
        1998 => "XATTR",
        _ => return stream.to_string(),
    };
    format!("{stream} {name}")
}

#[cfg(test)]
mod tests;
