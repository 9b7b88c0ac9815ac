//! The attribute record: what an entry is called, what it is, and how it looked (reference 04 §6.1, 05 §4).

use crate::decimal;
use crate::file_type::FileType;
use crate::lstat::{LStat, LStatError};

/// An attribute record to be written.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// FileIndex, from 1.
    pub file_index: i32,
    /// What the entry is.
    pub file_type: FileType,
    /// The path. Directories get exactly one `/` at the end whether it is here or not.
    pub name: &'a [u8],
    /// How the entry looked.
    pub lstat: LStat,
    /// Target of a symbolic link, or first name of a hard-linked file; else empty.
    pub link: &'a [u8],
    /// Extended attributes of Windows; empty on Linux but for [`Attributes::UPDATE_MARK`].
    pub attr_ex: &'a [u8],
    /// 0, but for plugins with delta and for metadata updates of regular files.
    pub delta_seq: i32,
}

impl Attributes<'_> {
    /// What stands in `attr_ex` of an update without data (stream 37, reference 04 §6.8).
    pub const UPDATE_MARK: &'static [u8] = b"<NULL>";

    /// Appends the record, up to and including its last NUL.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.name.len() + self.link.len() + self.attr_ex.len() + 256);
        decimal::push_i64(out, i64::from(self.file_index));
        out.push(b' ');
        decimal::push_u64(out, u64::from(self.file_type.code()));
        out.push(b' ');
        self.push_name(out);
        out.push(0);
        self.lstat.encode(out);
        out.push(0);
        out.extend_from_slice(self.link);
        out.push(0);
        out.extend_from_slice(self.attr_ex);
        out.push(0);
        decimal::push_i64(out, i64::from(self.delta_seq));
        out.push(0);
    }

    fn push_name(&self, out: &mut Vec<u8>) {
        if !self.file_type.has_directory_name() {
            out.extend_from_slice(self.name);
            return;
        }
        let end = self.name.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        out.extend_from_slice(self.name.get(..end).unwrap_or_default());
        out.push(b'/');
    }
}

/// An attribute record as read; borrows from the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttributesRecord<'a> {
    /// FileIndex.
    pub file_index: i64,
    /// Number of the type without its flag bits; see [`AttributesRecord::file_type`].
    pub type_code: u16,
    /// The path; ends in `/` for directories.
    pub name: &'a [u8],
    /// The text of `lstat`, as it stands in the record.
    pub lstat_text: &'a [u8],
    /// How the entry looked.
    pub lstat: LStat,
    /// Target of a symbolic link, or first name of a hard-linked file.
    pub link: &'a [u8],
    /// Extended attributes of Windows, or [`Attributes::UPDATE_MARK`].
    pub attr_ex: &'a [u8],
    /// 0 where the record has none.
    pub delta_seq: i64,
}

/// Why a payload is no attribute record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AttributesError {
    /// One of the fields is not there.
    #[error("attribute record ends before its {0}")]
    Missing(&'static str),
    /// The attributes can't be read.
    #[error(transparent)]
    LStat(#[from] LStatError),
}

/// Set in the type where a data stream stands in place of the delta sequence; never written today (reference 05 §4).
const TYPE_HAS_DATA_STREAM: i64 = 1 << 16;

impl<'a> AttributesRecord<'a> {
    /// What the entry is; `None` if the number is not known.
    pub fn file_type(&self) -> Option<FileType> {
        FileType::from_code(self.type_code)
    }

    /// Reads a record. Numbers are read as tolerantly as the reference does it; the two blanks and the first three NULs
    /// must be there.
    pub fn parse(record: &'a [u8]) -> Result<Self, AttributesError> {
        let (file_index, rest) = decimal::take_i64(record);
        let rest = rest.strip_prefix(b" ").ok_or(AttributesError::Missing("type"))?;
        let (type_word, rest) = decimal::take_i64(rest);
        let rest = rest.strip_prefix(b" ").ok_or(AttributesError::Missing("name"))?;
        let (name, rest) = take_text(rest).ok_or(AttributesError::Missing("attributes"))?;
        let (lstat_text, rest) = take_text(rest).ok_or(AttributesError::Missing("link"))?;
        let (link, rest) = take_text(rest).ok_or(AttributesError::Missing("extended attributes"))?;
        let (attr_ex, rest) = take_text(rest).unwrap_or((rest, &[]));
        let delta_seq = if type_word & TYPE_HAS_DATA_STREAM == 0 { decimal::take_i64(rest).0 } else { 0 };
        Ok(Self {
            file_index,
            type_code: u16::try_from(type_word & 0xFFFF).unwrap_or_default(),
            name,
            lstat_text,
            lstat: LStat::decode(lstat_text)?,
            link,
            attr_ex,
            delta_seq,
        })
    }
}

/// The bytes before the first NUL and those behind it; `None` without a NUL.
fn take_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (text, rest) = bytes.split_at(end);
    rest.split_first().map(|(_nul, rest)| (text, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lstat::Stat;
    use crate::stream::Stream;
    use crate::test_bytes::hex;

    const REGULAR: &str = "32302033202f7372762f642f612e747874 00 503441206d776e4e2049476b2042204120412041205020424141204920426c552f454120426c552f454120427241514f6f2041204120430000003000";
    const EMPTY: &str = "31312032202f7372762f642f656d70747900503441206d776e4f2049476b2042204120412041204120424141204120426c552f454120426c552f454120427241514f6f2041204120430000003000";
    const DIRECTORY: &str = "312035202f7372762f642f656d7074796469722f00503441206d776e542045487420432041204120412042414120424141204920426c552f454120426c552f454120427241514f6f2041204120430000003000";
    const SYMLINK: &str = "31332034202f7372762f642f73796d00503441206d776e55204b482f2042204120412041204620424141204120426c552f454120426c552f454120427241514f6f20412041204300612e74787400003000";
    const HARD_LINK: &str = "31362031202f7372762f642f683300503441206d776e572049476b2044204120412041205120424141204920427241514f7220426c552f454120427241514f6f204d20412043002f7372762f642f683200003000";

    #[test]
    fn the_records_of_the_reference_survive_a_round_trip() {
        for text in [REGULAR, EMPTY, DIRECTORY, SYMLINK, HARD_LINK] {
            let record = hex(text);
            let parsed = AttributesRecord::parse(&record).unwrap();
            let mut out = Vec::new();
            Attributes {
                file_index: i32::try_from(parsed.file_index).unwrap(),
                file_type: parsed.file_type().unwrap(),
                name: parsed.name,
                lstat: parsed.lstat,
                link: parsed.link,
                attr_ex: parsed.attr_ex,
                delta_seq: i32::try_from(parsed.delta_seq).unwrap(),
            }
            .encode(&mut out);
            assert_eq!(out, record);
        }
    }

    #[test]
    fn the_fields_of_a_hard_link_are_found() {
        let record = hex(HARD_LINK);
        let parsed = AttributesRecord::parse(&record).unwrap();
        assert_eq!(parsed.file_index, 16);
        assert_eq!(parsed.file_type(), Some(FileType::HardLink));
        assert_eq!(parsed.name, b"/srv/d/h3");
        assert_eq!(parsed.link, b"/srv/d/h2");
        assert_eq!(parsed.lstat.link_fi, 12);
        assert_eq!(parsed.lstat.stat.nlink, 3);
        assert_eq!(parsed.lstat_text, b"P4A mwnW IGk D A A A Q BAA I BrAQOr BlU/EA BrAQOo M A C");
        assert_eq!((parsed.attr_ex, parsed.delta_seq), (&b""[..], 0));
    }

    #[test]
    fn a_metadata_update_has_its_mark_and_its_sequence() {
        let mut out = Vec::new();
        Attributes {
            file_index: 2,
            file_type: FileType::Regular,
            name: b"/srv/d/rand",
            lstat: LStat { data_stream: Stream::FILE_DATA, ..LStat::default() },
            link: b"",
            attr_ex: Attributes::UPDATE_MARK,
            delta_seq: 1,
        }
        .encode(&mut out);
        assert_eq!(out, b"2 3 /srv/d/rand\0A A A A A A A A A A A A A A A C\0\0<NULL>\x001\0");
        assert_eq!(AttributesRecord::parse(&out).unwrap().delta_seq, 1);
    }

    #[test]
    fn a_deleted_file_keeps_two_times() {
        let mut out = Vec::new();
        Attributes {
            file_index: 4,
            file_type: FileType::Deleted,
            name: b"/srv/d/zeros",
            lstat: LStat {
                stat: Stat { mtime: 1_700_000_000, ctime: 1_795_230_330, ..Stat::default() },
                data_stream: Stream::FILE_DATA,
                ..LStat::default()
            },
            link: b"",
            attr_ex: b"",
            delta_seq: 0,
        }
        .encode(&mut out);
        assert!(out.starts_with(b"4 23 /srv/d/zeros\0A A A A A A A A A A A BlU/EA "));
        assert!(out.ends_with(b" A A C\0\0\x000\0"));
    }

    #[test]
    fn directories_end_in_exactly_one_slash_and_other_bytes_pass() {
        for (name, recorded) in
            [(&b"/d"[..], &b"/d/"[..]), (b"/d///", b"/d/"), (b"/", b"/"), (b"//", b"/"), (b"/a \n\xff", b"/a \n\xff/")]
        {
            let mut out = Vec::new();
            let attributes = Attributes {
                file_index: 1,
                file_type: FileType::Directory,
                name,
                lstat: LStat::default(),
                link: b"",
                attr_ex: b"",
                delta_seq: 0,
            };
            attributes.encode(&mut out);
            assert_eq!(AttributesRecord::parse(&out).unwrap().name, recorded);
            out.clear();
            Attributes { file_type: FileType::Regular, ..attributes }.encode(&mut out);
            assert_eq!(AttributesRecord::parse(&out).unwrap().name, name);
        }
    }

    #[test]
    fn records_without_their_separators_are_refused() {
        let record = hex(SYMLINK);
        let nuls: Vec<usize> = (0..record.len()).filter(|at| record[*at] == 0).collect();
        for end in 0..record.len() {
            let parsed = AttributesRecord::parse(&record[..end]);
            assert_eq!(parsed.is_ok(), end > nuls[2], "cut at {end}");
        }
        assert_eq!(AttributesRecord::parse(b"13"), Err(AttributesError::Missing("type")));
        assert_eq!(AttributesRecord::parse(b"13 4"), Err(AttributesError::Missing("name")));
    }

    #[test]
    fn unknown_types_and_flag_bits_are_kept_apart() {
        let record = b"1 99 /x\0A A A A A A A A A A A A A\0\0\0";
        let parsed = AttributesRecord::parse(record).unwrap();
        assert_eq!((parsed.type_code, parsed.file_type(), parsed.delta_seq), (99, None, 0));
        let record = b"1 65539 /x\0A A A A A A A A A A A A A\0\0\x00C\0";
        let parsed = AttributesRecord::parse(record).unwrap();
        assert_eq!((parsed.file_type(), parsed.delta_seq), (Some(FileType::Regular), 0));
    }
}
