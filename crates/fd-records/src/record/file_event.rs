//! What a plugin has found in a file (stream 38, reference 07 §5.10).

use crate::record::plugin_object::push_bashed;
use crate::text::decimal;

/// The record of a file event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileEventRecord<'a> {
    /// A letter; `a` for a virus.
    pub kind: u8,
    /// From 0 on.
    pub severity: i32,
    /// What found it.
    pub source: &'a [u8],
    /// What was found.
    pub description: &'a [u8],
}

impl FileEventRecord<'_> {
    /// Appends the record, which has no NUL at its end.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind, b' ']);
        decimal::push_i64(out, i64::from(self.severity));
        for text in [self.source, self.description] {
            out.push(b' ');
            push_bashed(out, text);
        }
        out.extend_from_slice(b" 0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of reference 07 §5.10.
    #[test]
    fn an_event_is_written_as_the_stock_daemon_writes_it() {
        let mut out = Vec::new();
        let event =
            FileEventRecord { kind: b'a', severity: 100, source: b"some source", description: b"A good description" };
        event.encode(&mut out);
        assert_eq!(out, b"a 100 some\x01source A\x01good\x01description 0");
    }
}
