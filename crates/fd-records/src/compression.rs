//! The 12 bytes before LZO and ZSTD data (reference 04 §8.6). Not here: compressing.

/// What stands before the compressed bytes of a record of streams 29 to 33.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompressionHeader {
    /// Which algorithm.
    pub magic: u32,
    /// Bytes that follow the header.
    pub size: u32,
    /// Always written as 0.
    pub level: u16,
    /// Always 1.
    pub version: u16,
}

impl CompressionHeader {
    /// Bytes of the header.
    pub const LENGTH: usize = 12;
    /// Magic number of LZO data, "LZOX".
    pub const LZO: u32 = 0x4C5A_4F58;
    /// Magic number of ZSTD data, "LZOY".
    pub const ZSTD: u32 = 0x4C5A_4F59;
    /// The only version.
    pub const VERSION: u16 = 1;

    /// The header for `size` bytes of compressed data.
    pub const fn new(magic: u32, size: u32) -> Self {
        Self { magic, size, level: 0, version: Self::VERSION }
    }

    /// The bytes: magic, size, level, version, all big endian.
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let [m0, m1, m2, m3] = self.magic.to_be_bytes();
        let [s0, s1, s2, s3] = self.size.to_be_bytes();
        let [l0, l1] = self.level.to_be_bytes();
        let [v0, v1] = self.version.to_be_bytes();
        [m0, m1, m2, m3, s0, s1, s2, s3, l0, l1, v0, v1]
    }

    /// The header of a record, and what follows it; `None` if the record is shorter than a header.
    pub fn split(record: &[u8]) -> Option<(Self, &[u8])> {
        let ([m0, m1, m2, m3, s0, s1, s2, s3, l0, l1, v0, v1], rest) = record.split_first_chunk::<12>()?;
        let header = Self {
            magic: u32::from_be_bytes([*m0, *m1, *m2, *m3]),
            size: u32::from_be_bytes([*s0, *s1, *s2, *s3]),
            level: u16::from_be_bytes([*l0, *l1]),
            version: u16::from_be_bytes([*v0, *v1]),
        };
        Some((header, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_bytes::hex;

    #[test]
    fn the_header_of_the_reference_is_read_and_written() {
        let record = hex("4c5a4f58 00000013 0000 0001 2048656c6c6f2c20426163756c61210a110000");
        let (header, data) = CompressionHeader::split(&record).unwrap();
        assert_eq!(header, CompressionHeader::new(CompressionHeader::LZO, 0x13));
        assert_eq!(data.len(), 0x13);
        assert_eq!(header.to_bytes(), record[..12]);
        assert_eq!(CompressionHeader::split(&record[..11]), None);
    }
}
