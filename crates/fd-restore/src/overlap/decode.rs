//! The records of a small file, or of a directory that is left, as one object.

use std::time::Duration;

use fd_records::{AttributesRecord, FileType, MetadataKind, RecordHeader, Stream, StreamClass};

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
    /// Adds a record's bytes. `None`: there are too many.
    fn add(&mut self, record: &[u8]) -> Option<()> {
        self.bytes = self.bytes.saturating_add(record.len() + RECORD);
        (self.bytes <= MOST_IN_RECORDS).then_some(())
    }
}

/// What can belong to a run.
pub(super) enum Kind {
    /// A small file that is restored like any other new one, in this directory.
    NewFile(OutputPath),
    /// A directory that is left. None of its records counts as decoded.
    Directory,
}

/// An object all of whose records have come.
pub(super) struct Decoded {
    pub(super) kind: Kind,
    /// The header of its attributes.
    pub(super) header: RecordHeader,
    pub(super) item: RestoreItem,
    pub(super) data: FileData,
    pub(super) size: Size,
    /// Its metadata: an ACL, if there is one.
    pub(super) behind: Option<MetadataKind>,
}

impl Decoded {
    /// The object whose records come next, if it can belong to a run, and everything has come.
    pub(super) fn next(
        records: &mut Lookahead<'_>,
        patience: Duration,
        plan: &RestorePlan,
        unpacker: &mut Unpacker,
    ) -> Option<Self> {
        let (header, record) = records.look(0, patience)?;
        let item = item_of(header, record, plan)?;
        let kind = kind_of(&item)?;
        let (patience, decoded) = match kind {
            Kind::NewFile(_) => (patience, 1),
            Kind::Directory => (LITTLE_PATIENCE, 0),
        };
        let size = Size { decoded, rest: 1 - decoded, bytes: record.len() + RECORD };
        let mut object = Self { kind, header, item, data: FileData::default(), size, behind: None };
        loop {
            let before = object.size.decoded + object.size.rest;
            let Some((header, record)) = records.look(before, patience) else {
                return (records.ends_well() && !object.is_short()).then_some(object);
            };
            match (header.stream.class(), &object.kind) {
                (StreamClass::Attributes | StreamClass::AttributesUpdate, _) => return Some(object),
                _ if !header.is_of_file_of(&object.header) => return None,
                (StreamClass::Data(_), Kind::NewFile(_)) => object.add_data(header.stream, record, unpacker)?,
                (StreamClass::Metadata(kind), _) => {
                    object.size.rest += 1;
                    if !record.is_empty() && object.behind != Some(MetadataKind::Acl) {
                        object.behind = Some(kind);
                    }
                }
                (StreamClass::Digest(_), Kind::NewFile(_)) => object.size.rest += 1,
                _ => return None,
            }
            object.size.add(record)?;
        }
    }

    /// Whether its attributes say that there is more data.
    fn is_short(&self) -> bool {
        let has_come = self.data.bytes.len();
        matches!(self.kind, Kind::NewFile(_)) && usize::try_from(self.item.stat.size).is_ok_and(|size| size > has_come)
    }

    /// Adds a record of data. `None`: it is not like that of any other file.
    fn add_data(&mut self, stream: Stream, record: &[u8], unpacker: &mut Unpacker) -> Option<()> {
        let layout = stream.layout();
        let is_in_place = self.size.rest == 0 && self.data.stream.is_none_or(|before| before == stream);
        if !is_in_place || layout.is_encrypted || layout.is_win32 {
            return None;
        }
        let piece = unpacker.unpack(layout, record).ok()?;
        // A file with holes is made by itself.
        if piece.address.is_some_and(|address| address != self.data.bytes.len() as u64) {
            return None;
        }
        self.data.push(stream, record.len(), unpacker.data(&piece, record));
        self.size.decoded += 1;
        (self.data.bytes.len() <= MOST_DATA).then_some(())
    }
}

/// What an attribute record means, if it is one whose data can be restored.
fn item_of(header: RecordHeader, record: &[u8], plan: &RestorePlan) -> Option<RestoreItem> {
    if header.stream.class() != StreamClass::Attributes {
        return None;
    }
    let parsed = AttributesRecord::parse(record)?;
    let is_restorable = parsed.lstat.data_stream.is_restorable_data();
    if is_restorable { RestoreItem::new(&parsed, header.stream, false, plan).ok() } else { None }
}

/// Whether an object can belong to a run.
fn kind_of(item: &RestoreItem) -> Option<Kind> {
    let is_small = || usize::try_from(item.stat.size).is_ok_and(|size| size <= MOST_DATA);
    match Plan::of(item).ok()? {
        Plan::Object(Object::NewFile, Place { parent, .. }) if is_small() => Some(Kind::NewFile(parent)),
        Plan::Directory(_) if item.file_type == Some(FileType::Directory) => Some(Kind::Directory),
        _ => None,
    }
}
