//! One message of the accurate list that a Director sends (reference 04 §13.1).

use crate::record::lstat::LStat;
use crate::text::decimal;

/// A file as the catalog knows it; borrows from the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccurateEntry<'a> {
    /// The path, stripped as on the volume; ends in `/` for directories.
    pub name: &'a [u8],
    /// Its attributes as text.
    pub lstat_text: &'a [u8],
    /// Its digest in base 64 without padding; empty if the catalog has none.
    pub digest: &'a [u8],
    /// Delta sequence.
    pub delta_seq: u16,
}

impl<'a> AccurateEntry<'a> {
    /// Reads `path NUL lstat NUL digest NUL delta`. Digest and delta may be missing; `None` without
    /// attributes: such a message is ignored.
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let mut fields = message.split(|byte| *byte == 0);
        let name = fields.next()?;
        let lstat_text = fields.next().filter(|text| !text.is_empty())?;
        let digest = fields.next().unwrap_or_default();
        let delta = fields.next().map_or(0, |text| decimal::take_i64(text).0);
        // The reference keeps the low 16 bits.
        let delta_seq = u16::try_from(delta & 0xFFFF).unwrap_or_default();
        Some(Self { name, lstat_text, digest, delta_seq })
    }

    /// The attributes; `None` if their text is damaged.
    pub fn lstat(&self) -> Option<LStat> {
        LStat::decode(self.lstat_text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_two_to_four_fields() {
        let entry = AccurateEntry::parse(
            b"/srv/d/rand\0P4A mwnN IGk B A A A P BAA I BlU/EA BlU/EA BrAQOo A A C\0nVdV36yYdCA1NqA50wWznw\x000",
        )
        .unwrap();
        assert_eq!(entry.name, b"/srv/d/rand");
        assert_eq!(entry.digest, b"nVdV36yYdCA1NqA50wWznw");
        assert_eq!(entry.lstat().unwrap().stat.size, 15);
        assert_eq!(entry.delta_seq, 0);

        let entry = AccurateEntry::parse(b"/d/\0A A\0\x0070001").unwrap();
        assert_eq!((entry.digest, entry.delta_seq), (&b""[..], 4465));
        let entry = AccurateEntry::parse(b"/d/\0A A").unwrap();
        assert_eq!((entry.name, entry.digest, entry.delta_seq), (&b"/d/"[..], &b""[..], 0));
        assert!(entry.lstat().is_none());
    }

    #[test]
    fn a_name_alone_is_ignored() {
        assert_eq!(AccurateEntry::parse(b"/d/"), None);
        assert_eq!(AccurateEntry::parse(b"/d/\0"), None);
        assert_eq!(AccurateEntry::parse(b""), None);
    }
}
