//! The records of a small file, or of a directory that is left, as one object.

use std::time::Duration;

use fd_records::{AttributesRecord, FileType, RecordHeader, Stream, StreamClass};

use crate::file::{Object, Place, Plan, RestoreItem};
use crate::plan::RestorePlan;
use crate::stream::{Lookahead, Unpacker};
use crate::tree::OutputPath;

/// The largest file that is small, by its attributes and by its data.
const MOST_DATA: usize = 256 << 10;

/// The most bytes of all its records.
const MOST_IN_RECORDS: usize = 1 << 20;

/// What a record takes beside its bytes, about.
const RECORD: usize = 64;

/// How long each record may take.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);

/// The same where others are waiting to be made.
pub(super) const LITTLE_PATIENCE: Duration = Duration::from_millis(2);

/// The data of a small file, unpacked.
#[derive(Default, Debug)]
pub(crate) struct FileData {
    /// The stream of its records; `None` if there are none.
    stream: Option<Stream>,
    bytes: Vec<u8>,
    /// The length of each record, and where its data ends.
    records: Vec<(usize, usize)>,
}

impl FileData {
    /// Adds the data of a record.
    pub(super) fn push(&mut self, stream: Stream, length: usize, data: &[u8]) {
        self.stream = Some(stream);
        self.bytes.extend_from_slice(data);
        self.records.push((length, self.bytes.len()));
    }

    /// The stream of its records; `None` if there are none.
    pub(crate) const fn stream(&self) -> Option<Stream> {
        self.stream
    }

    /// All of it.
    pub(crate) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// What each record holds of it, behind the record's length.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut begin = 0;
        self.records.iter().map(move |(length, end)| {
            let piece = self.bytes.get(begin..*end).unwrap_or_default();
            begin = *end;
            (*length, piece)
        })
    }
}

/// How many records an object has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Those of its attributes and its data, which are decoded.
    pub(super) decoded: usize,
    /// Those behind them.
    pub(super) rest: usize,
    /// The bytes of all.
    pub(super) bytes: usize,
}

impl Size {
    const fn of_first(record: &[u8]) -> Self {
        Self { decoded: 1, rest: 0, bytes: record.len() + RECORD }
    }

    /// Adds a record's bytes. `None`: there are too many.
    fn add(&mut self, record: &[u8]) -> Option<()> {
        self.bytes = self.bytes.saturating_add(record.len() + RECORD);
        (self.bytes <= MOST_IN_RECORDS).then_some(())
    }
}

/// A file whose records have come.
pub(super) struct SmallFile {
    /// The header of its attributes.
    pub(super) header: RecordHeader,
    pub(super) item: RestoreItem,
    /// The directory that it is made in.
    pub(super) parent: OutputPath,
    pub(super) data: FileData,
    pub(super) size: Size,
    pub(super) has_metadata: bool,
}

impl SmallFile {
    /// The file whose records come next, if it is a small one of which everything has come, and
    /// which is restored like any other new file.
    pub(super) fn decode(
        records: &mut Lookahead<'_>,
        patience: Duration,
        plan: &RestorePlan,
        unpacker: &mut Unpacker,
    ) -> Option<Self> {
        let (header, record) = records.look(0, patience)?;
        let (item, parent) = new_file(header, record, plan)?;
        let size = Size::of_first(record);
        let mut file = Self { header, item, parent, data: FileData::default(), size, has_metadata: false };
        loop {
            let before = file.size.decoded + file.size.rest;
            let Some((header, record)) = records.look(before, patience) else {
                return records.ends_well().then_some(file);
            };
            match header.stream.class() {
                StreamClass::Attributes | StreamClass::AttributesUpdate => return Some(file),
                _ if !header.is_of_file_of(&file.header) => return None,
                StreamClass::Data(_) => file.add_data(header.stream, record, unpacker)?,
                StreamClass::Metadata(_) => {
                    file.size.rest += 1;
                    file.has_metadata |= !record.is_empty();
                }
                StreamClass::Digest(_) => file.size.rest += 1,
                _ => return None,
            }
            file.size.add(record)?;
        }
    }

    /// Adds a record of data. `None`: it is not like that of any other file.
    fn add_data(&mut self, stream: Stream, record: &[u8], unpacker: &mut Unpacker) -> Option<()> {
        let layout = stream.layout();
        let is_in_place = self.size.rest == 0 && self.data.stream.is_none_or(|before| before == stream);
        if !is_in_place || layout.is_encrypted || layout.is_win32 || layout.has_address {
            return None;
        }
        self.data.push(stream, record.len(), unpacker.unpack(layout, record).ok()?.data);
        self.size.decoded += 1;
        (self.data.bytes.len() <= MOST_DATA).then_some(())
    }
}

/// What the attribute record of a new small file means, and the directory that it is made in.
fn new_file(header: RecordHeader, record: &[u8], plan: &RestorePlan) -> Option<(RestoreItem, OutputPath)> {
    let is_small = |item: &RestoreItem| usize::try_from(item.stat.size).is_ok_and(|size| size <= MOST_DATA);
    let item = restorable(header, record, plan).filter(is_small)?;
    match Plan::of(&item) {
        Ok(Plan::Object(Object::NewFile, Place { parent, .. })) => Some((item, parent)),
        _ => None,
    }
}

/// What an attribute record means, if it is one whose data can be restored.
fn restorable(header: RecordHeader, record: &[u8], plan: &RestorePlan) -> Option<RestoreItem> {
    if header.stream.class() != StreamClass::Attributes {
        return None;
    }
    let parsed = AttributesRecord::parse(record).ok()?;
    let is_restorable = parsed.lstat.data_stream.is_restorable_data();
    is_restorable.then(|| RestoreItem::new(&parsed, header.stream, false, plan))
}

/// A directory whose records have come. None of them is decoded.
pub(super) struct LeftDirectory {
    pub(super) size: Size,
    pub(super) path: OutputPath,
}

impl LeftDirectory {
    /// The directory whose records come next, if everything has come.
    pub(super) fn decode(records: &mut Lookahead<'_>, plan: &RestorePlan) -> Option<Self> {
        let (first, record) = records.look(0, LITTLE_PATIENCE)?;
        let item = restorable(first, record, plan).filter(|item| item.file_type == Some(FileType::Directory))?;
        let path = item.path.ok()?;
        let Size { bytes, .. } = Size::of_first(record);
        let mut directory = Self { size: Size { decoded: 0, rest: 1, bytes }, path };
        loop {
            let Some((header, record)) = records.look(directory.size.rest, LITTLE_PATIENCE) else {
                return records.ends_well().then_some(directory);
            };
            match header.stream.class() {
                StreamClass::Attributes | StreamClass::AttributesUpdate => return Some(directory),
                StreamClass::Metadata(_) if header.is_of_file_of(&first) => directory.size.rest += 1,
                _ => return None,
            }
            directory.size.add(record)?;
        }
    }
}
