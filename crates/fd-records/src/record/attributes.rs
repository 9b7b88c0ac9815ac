//! The attribute record: name, type and attributes of an entry (reference 04 §6.1, 05 §4).

use crate::record::lstat::LStat;
use crate::text::decimal;
use crate::vocabulary::file_type::FileType;

/// An attribute record to be written.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// FileIndex, from 1.
    pub file_index: i32,
    /// Type of the entry.
    pub file_type: FileType,
    /// The path. Directories get exactly one `/` at the end whether it is here or not.
    pub name: &'a [u8],
    /// The attributes.
    pub lstat: LStat,
    /// Target of a symbolic link, or first name of a hard-linked file; else empty.
    pub link: &'a [u8],
    /// Extended attributes of Windows; empty on Linux except for [`Attributes::UPDATE_MARK`].
    pub attr_ex: &'a [u8],
    /// 0 except for plugins with delta and for metadata updates of regular files.
    pub delta_seq: i32,
}

impl Attributes<'_> {
    /// The value of `attr_ex` in an update without data (stream 37, reference 04 §6.8).
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
        if self.file_type != FileType::Directory {
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
    /// The text of `lstat` in the record.
    pub lstat_text: &'a [u8],
    /// The attributes.
    pub lstat: LStat,
    /// Target of a symbolic link, or first name of a hard-linked file.
    pub link: &'a [u8],
    /// Extended attributes of Windows, or [`Attributes::UPDATE_MARK`].
    pub attr_ex: &'a [u8],
    /// 0 where the record has none.
    pub delta_seq: i64,
}

/// Set in the type where a data stream replaces the delta sequence; never written today (reference
/// 05 §4).
const TYPE_HAS_DATA_STREAM: i64 = 1 << 16;

impl<'a> AttributesRecord<'a> {
    /// Type of the entry; `None` if the number is unknown.
    pub fn file_type(&self) -> Option<FileType> {
        FileType::from_code(self.type_code)
    }

    /// Reads a record. Numbers are read as tolerantly as by the reference; the two blanks and the
    /// first three NULs must be there, and the LStat must be one; else `None`.
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let (file_index, rest) = decimal::take_i64(record);
        let rest = rest.strip_prefix(b" ")?;
        let (type_word, rest) = decimal::take_i64(rest);
        let rest = rest.strip_prefix(b" ")?;
        let (name, rest) = take_text(rest)?;
        let (lstat_text, rest) = take_text(rest)?;
        let (link, rest) = take_text(rest)?;
        let (attr_ex, rest) = take_text(rest).unwrap_or((rest, &[]));
        let delta_seq = if type_word & TYPE_HAS_DATA_STREAM == 0 { decimal::take_i64(rest).0 } else { 0 };
        Some(Self {
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
mod tests;
