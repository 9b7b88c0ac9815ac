//! The record of extended attributes (stream 1998): names with values, each behind a magic number
//! (reference 04 §11).

/// Precedes each attribute.
const MAGIC: [u8; 4] = 0x005C_5884_u32.to_be_bytes();

/// An attribute, borrowed from its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Xattr<'a> {
    /// The whole name, with its name space.
    pub name: &'a [u8],
    /// The value; may be empty.
    pub value: &'a [u8],
}

/// The bytes that [`push`] appends for this attribute.
pub const fn length(name: &[u8], value: &[u8]) -> usize {
    MAGIC.len() + 2 * size_of::<u32>() + name.len() + value.len()
}

/// Appends one attribute. The lengths of a kernel's attributes fit (255 bytes and 64 KiB); longer
/// ones are cut at 4 GiB.
pub fn push(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(&MAGIC);
    push_counted(out, name);
    push_counted(out, value);
}

fn push_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes.get(..length as usize).unwrap_or(bytes));
}

/// The attributes of a record. Damage ends them, as in the reference (05 §10); those before it are
/// returned, and [`Entries::unread`] tells.
pub fn entries(record: &[u8]) -> Entries<'_> {
    Entries { rest: record }
}

/// Iterator over a record, see [`entries`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl Entries<'_> {
    /// The number of bytes not read: 0 at the record's end, else the length of the damaged part.
    pub fn unread(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Xattr<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.strip_prefix(&MAGIC)?;
        let (name, rest) = take_counted(rest)?;
        if name.is_empty() || name.contains(&0) {
            return None;
        }
        let (value, rest) = take_counted(rest)?;
        self.rest = rest;
        Some(Xattr { name, value })
    }
}

/// A text and the length before it.
fn take_counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_bytes::hex;

    const RECORD: &str =
        "005c588400000008757365722e6f6e650000000676616c756531005c58840000000a757365722e656d70747900000000";

    #[test]
    fn the_record_of_the_reference_is_written_and_read() {
        let mut out = Vec::new();
        push(&mut out, b"user.one", b"value1");
        push(&mut out, b"user.empty", b"");
        assert_eq!(out, hex(RECORD));
        assert_eq!(length(b"user.one", b"value1") + length(b"user.empty", b""), out.len());
        let mut attributes = entries(&out);
        assert_eq!(attributes.next(), Some(Xattr { name: b"user.one", value: b"value1" }));
        assert_eq!(attributes.next(), Some(Xattr { name: b"user.empty", value: b"" }));
        assert_eq!(attributes.next(), None);
        assert_eq!(attributes.unread(), 0);
    }

    #[test]
    fn a_cut_record_returns_the_attributes_before_the_cut() {
        let record = hex(RECORD);
        for end in 0..record.len() {
            let mut attributes = entries(&record[..end]);
            let count = attributes.by_ref().count();
            assert_eq!(count, usize::from(end >= 26), "cut at {end}");
            assert_eq!(attributes.unread(), if end >= 26 { end - 26 } else { end });
        }
    }

    #[test]
    fn wrong_magic_name_or_length_ends_the_record() {
        let record = hex(RECORD);
        for (at, value) in [(26, 1), (33, 0), (30, 0xff), (37, 0)] {
            let mut wrong = record.clone();
            wrong[at] = value;
            assert_eq!(entries(&wrong).count(), 1, "byte {at}");
        }
    }
}
