//! What a plugin tells the catalog about what it has saved (stream 34, reference 07 §6.3).

use crate::text::c_text::c_text;
use crate::text::decimal;

/// The record of a plugin object: type 29.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PluginObjectRecord<'a> {
    /// Where it is.
    pub path: &'a [u8],
    /// The plugin command of the FileSet.
    pub command: &'a [u8],
    /// For example `Database`.
    pub category: &'a [u8],
    /// For example `PostgreSQL`.
    pub object_type: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// What it was made of.
    pub source: &'a [u8],
    /// Its unique number.
    pub uuid: &'a [u8],
    /// Its size in bytes.
    pub size: u64,
    /// A character; 0 is written as `U`.
    pub status: u8,
    /// How many parts it has.
    pub count: u32,
}

impl PluginObjectRecord<'_> {
    /// Appends the record. A space inside of a text becomes the byte 1.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let texts = [self.path, self.command, self.category, self.object_type, self.name, self.source, self.uuid];
        for text in texts {
            push_bashed(out, text);
            out.push(b' ');
        }
        decimal::push_u64(out, self.size);
        out.extend_from_slice(&[b' ', if self.status == 0 { b'U' } else { self.status }, b' ']);
        decimal::push_u64(out, u64::from(self.count));
        out.push(0);
    }
}

/// Appends a text whose spaces become the byte 1, up to its first NUL.
pub(crate) fn push_bashed(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(c_text(text).iter().map(|byte| if *byte == b' ' { 1 } else { *byte }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of reference 07 §6.3.
    #[test]
    fn a_plugin_object_is_written_as_the_stock_daemon_writes_it() {
        let mut out = Vec::new();
        PluginObjectRecord {
            path: b"/@tp/with space/vm",
            command: b"tp:mode=full:arg two",
            category: b"Virtual Machine",
            object_type: b"VMWare",
            name: b"vm 1",
            source: b"src",
            size: 12_345,
            count: 7,
            ..PluginObjectRecord::default()
        }
        .encode(&mut out);
        let expected: &[u8] =
            b"/@tp/with\x01space/vm tp:mode=full:arg\x01two Virtual\x01Machine VMWare vm\x011 src  12345 U 7\0";
        assert_eq!(out, expected);
        assert_eq!(out.len(), 83);
    }
}
