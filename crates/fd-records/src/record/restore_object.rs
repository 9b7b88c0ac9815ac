//! An object that a plugin saves for its restores (stream 28, reference 07 §6.1).

use crate::text::c_text::c_text;
use crate::text::decimal;

/// The record of a restore object: types 25, 27 and 30.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestoreObjectRecord<'a> {
    /// FileIndex: an object counts as a file.
    pub file_index: i32,
    /// Number of its type.
    pub object_type: u16,
    /// Its place among the plugin's objects, as the plugin numbers it.
    pub index: i32,
    /// Its bytes, compressed if that makes them fewer.
    pub stored: &'a [u8],
    /// Number of its bytes before compression.
    pub full_len: usize,
    /// Whether it is compressed.
    pub is_compressed: bool,
    /// The plugin command of the FileSet.
    pub command: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
}

impl RestoreObjectRecord<'_> {
    /// Longer objects are compressed (zlib, level 9) and stored so if that makes them shorter.
    pub const COMPRESSED_ABOVE: usize = 1000;

    /// Appends the record with the one byte at its end, which the Storage Daemon overwrites.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.stored.len() + self.command.len() + self.name.len() + 64);
        decimal::push_i64(out, i64::from(self.file_index));
        for number in [
            i64::from(self.object_type),
            i64::from(self.index),
            i64::try_from(self.stored.len()).unwrap_or(i64::MAX),
            i64::try_from(self.full_len).unwrap_or(i64::MAX),
            i64::from(self.is_compressed),
        ] {
            out.push(b' ');
            decimal::push_i64(out, number);
        }
        out.push(b' ');
        out.extend_from_slice(c_text(self.command));
        out.push(0);
        out.extend_from_slice(c_text(self.name));
        out.push(0);
        out.extend_from_slice(self.stored);
        out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of reference 07 §5.12 and §6.1.
    #[test]
    fn objects_are_written_as_the_stock_daemon_writes_them() {
        let mut out = Vec::new();
        let small = RestoreObjectRecord {
            file_index: 12,
            object_type: 25,
            index: 3,
            stored: b"hello object",
            full_len: 12,
            is_compressed: false,
            command: b"tp:mode=full:arg two",
            name: b"obj small",
        };
        small.encode(&mut out);
        assert_eq!(out, b"12 25 3 12 12 0 tp:mode=full:arg two\0obj small\0hello object\0");
        assert_eq!(out.len(), 60);
        out.clear();
        let stored = [0x78, 0xda, 1];
        RestoreObjectRecord { index: 4, stored: &stored, full_len: 5000, is_compressed: true, ..small }
            .encode(&mut out);
        assert_eq!(out, b"12 25 4 3 5000 1 tp:mode=full:arg two\0obj small\0\x78\xda\x01\0");
    }
}
