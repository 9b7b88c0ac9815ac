//! How file data is compressed: the letters of the FileSet, and the 12 bytes before LZO and ZSTD
//! data (reference 03 §2.2, 04 §8.6). Not here: compressing.

/// How the data of a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Compression {
    /// zlib, level 0 to 9 (`Z0` … `Z9`).
    Gzip(u8),
    /// LZO1X (`Zo`).
    Lzo,
    /// Zstandard, level 1, 3, 10 or 19 (`Zr`, `Zs`, `Zu`, `Zt`). The packaged stock daemon ignores
    /// it (reference 03 §2.2).
    Zstd(i32),
}

impl Compression {
    /// The compression of the letter behind `Z` in an `O` line; `None` for an unknown letter.
    pub const fn from_letter(letter: u8) -> Option<Self> {
        Some(match letter {
            b'0'..=b'9' => Self::Gzip(letter - b'0'),
            b'o' => Self::Lzo,
            b'r' => Self::Zstd(1),
            b's' => Self::Zstd(3),
            b'u' => Self::Zstd(10),
            b't' => Self::Zstd(19),
            _ => return None,
        })
    }

    /// How its data is put into a record.
    pub const fn packing(self) -> Packing {
        match self {
            Self::Gzip(_) => Packing::Zlib,
            Self::Lzo | Self::Zstd(_) => Packing::WithHeader,
        }
    }
}

/// How the data of a record is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Packing {
    /// Not at all.
    #[default]
    Plain,
    /// One zlib stream.
    Zlib,
    /// As the [`CompressionHeader`] in front of it says.
    WithHeader,
}

/// The header of the compressed bytes in a record whose packing is [`Packing::WithHeader`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompressionHeader {
    /// The algorithm.
    pub magic: u32,
    /// Bytes that follow the header.
    pub size: u32,
    /// Always written as 0, whatever the level was.
    pub level: u16,
    /// Always 1.
    pub version: u16,
}

impl CompressionHeader {
    /// Bytes of the header.
    pub const LENGTH: usize = 12;
    /// Magic number of LZO data, "LZOX": one LZO1X stream follows.
    pub const LZO: u32 = 0x4C5A_4F58;
    /// Magic number of ZSTD data, "LZOY": one zstd frame follows.
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
        let ([m0, m1, m2, m3, s0, s1, s2, s3, l0, l1, v0, v1], rest) =
            record.split_first_chunk::<{ Self::LENGTH }>()?;
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
