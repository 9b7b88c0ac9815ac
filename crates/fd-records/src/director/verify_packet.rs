//! The packets of a Verify job to the Director: one with the attributes of a file, and one with its
//! digest if it has one (reference 05 §18.3). They are not records, but consist of the same texts.

use crate::text::{decimal, digest_text};
use crate::vocabulary::digest::DigestKind;

/// The attributes of a file.
#[derive(Clone, Copy, Debug)]
pub struct VerifyAttributes<'a> {
    /// Number of the file in the job, from 1; 0 for a file without a place in the catalog.
    pub number: u32,
    /// The letters of the attributes to compare; without blanks.
    pub options: &'a [u8],
    /// The path; a directory's with its slash.
    pub name: &'a [u8],
    /// The text of [`crate::LStat`].
    pub lstat_text: &'a [u8],
    /// Target of a symbolic link, first name of a hard link, else empty.
    pub link: &'a [u8],
}

impl VerifyAttributes<'_> {
    /// The packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut packet = Vec::with_capacity(self.name.len() + self.lstat_text.len() + self.link.len() + 64);
        decimal::push_u64(&mut packet, u64::from(self.number));
        packet.extend_from_slice(b" 1 ");
        for (text, end) in [(self.options, b' '), (self.name, 0), (self.lstat_text, 0), (self.link, 0)] {
            packet.extend_from_slice(text);
            packet.push(end);
        }
        packet
    }
}

/// The digest of the file whose attributes went before.
#[derive(Clone, Copy, Debug)]
pub struct VerifyDigest<'a> {
    /// The file's number, as in its attributes.
    pub number: u32,
    /// Its kind.
    pub kind: DigestKind,
    /// The digest's bytes.
    pub digest: &'a [u8],
}

impl VerifyDigest<'_> {
    /// The packet; no NUL and no newline at its end.
    pub fn encode(&self) -> Vec<u8> {
        let Self { number, kind, digest } = self;
        let mut packet = format!("{number} {} ", kind.stream().number()).into_bytes();
        packet.extend_from_slice(&digest_text::of(digest));
        packet.extend_from_slice(format!(" *{kind}-{number}*").as_bytes());
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_bytes::hex;

    /// The real packets of reference 05 §18.3.
    #[test]
    fn the_packets_of_the_stock_daemon() {
        let file = VerifyAttributes {
            number: 9,
            options: b"VVpins5",
            name: b"/data1/sub/hard3",
            lstat_text: b"P4A m+Qg IG0 D A A A M BAA Q BrAPqP 7msoA BrAPp2 D A C",
            link: b"/data1/hard2",
        };
        let packet = b"9 1 VVpins5 /data1/sub/hard3\0P4A m+Qg IG0 D A A A M BAA Q BrAPqP 7msoA BrAPp2 D A \
            C\0/data1/hard2\0";
        assert_eq!(file.encode(), packet);
        let digest = hex("d41d8cd98f00b204e9800998ecf8427e");
        let packet = VerifyDigest { number: 6, kind: DigestKind::Md5, digest: &digest }.encode();
        assert_eq!(packet, b"6 3 1B2M2Y8AsgTpgAmY7PhCfg *MD5-6*");
    }
}
