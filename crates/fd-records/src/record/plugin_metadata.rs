//! Metadata that a plugin keeps with a file (streams 35 and 36, reference 07 §5.9).

use crate::vocabulary::stream::Stream;

/// One packet of a file's metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PluginMetadata<'a> {
    /// Bytes of all packets of the file, as the plugin counts them.
    pub total_size: u32,
    /// Number of all packets of the file.
    pub total_count: u16,
    /// 0: a blob; 1: for the catalog.
    pub kind: i32,
    /// Its place among the file's packets.
    pub index: u16,
    /// Its bytes.
    pub data: &'a [u8],
}

/// Why a record is not a packet of metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PluginMetadataError {
    /// It ends in its head.
    #[error("metadata record of {0} bytes has no complete head")]
    Head(usize),
    /// It ends in its data.
    #[error("metadata record has {found} bytes of data instead of {announced}")]
    Data {
        /// The length in its head.
        announced: u32,
        /// The bytes that there are.
        found: usize,
    },
}

impl<'a> PluginMetadata<'a> {
    /// Bytes of the head.
    const HEAD: usize = 16;
    /// Bytes behind the data: the record has the length of the stock daemon's structure.
    const REST: usize = 8;
    /// A longer record is not saved.
    pub const LONGEST: usize = 3_000_000;

    /// The stream of its record; `None` for a kind that no record has.
    pub const fn stream(&self) -> Option<Stream> {
        match self.kind {
            0 => Some(Stream::PLUGIN_META_BLOB),
            1 => Some(Stream::PLUGIN_META_CATALOG),
            _ => None,
        }
    }

    /// The length of its record in bytes.
    pub const fn record_len(&self) -> usize {
        self.data.len().saturating_add(Self::HEAD + Self::REST)
    }

    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.record_len());
        out.extend_from_slice(&self.total_size.to_be_bytes());
        out.extend_from_slice(&self.total_count.to_be_bytes());
        out.extend_from_slice(&self.kind.to_be_bytes());
        out.extend_from_slice(&self.index.to_be_bytes());
        out.extend_from_slice(&u32::try_from(self.data.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(self.data);
        out.extend_from_slice(&[0; Self::REST]);
    }

    /// Reads a record.
    ///
    /// # Errors
    /// It is too short.
    pub fn parse(record: &'a [u8]) -> Result<Self, PluginMetadataError> {
        let short = PluginMetadataError::Head(record.len());
        let mut rest = record;
        let total_size = u32::from_be_bytes(take(&mut rest).ok_or(short)?);
        let total_count = u16::from_be_bytes(take(&mut rest).ok_or(short)?);
        let kind = i32::from_be_bytes(take(&mut rest).ok_or(short)?);
        let index = u16::from_be_bytes(take(&mut rest).ok_or(short)?);
        let announced = u32::from_be_bytes(take(&mut rest).ok_or(short)?);
        let data = usize::try_from(announced)
            .ok()
            .and_then(|len| rest.get(..len))
            .ok_or(PluginMetadataError::Data { announced, found: rest.len() })?;
        Ok(Self { total_size, total_count, kind, index, data })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOB: PluginMetadata<'_> =
        PluginMetadata { total_size: 457, total_count: 2, kind: 0, index: 0, data: b"blob-data\0" };

    /// The example of reference 07 §5.9.
    #[test]
    fn a_packet_is_written_and_read() {
        let mut out = Vec::new();
        BLOB.encode(&mut out);
        let expected = b"\0\0\x01\xc9\0\x02\0\0\0\0\0\0\0\0\0\x0ablob-data\0\0\0\0\0\0\0\0\0";
        assert_eq!(out, expected);
        assert_eq!((out.len(), BLOB.record_len()), (34, 34));
        assert_eq!(PluginMetadata::parse(&out), Ok(BLOB));
        // What follows the data does not matter.
        assert_eq!(PluginMetadata::parse(&out[..26]), Ok(BLOB));
    }

    #[test]
    fn a_short_record_is_refused() {
        let mut out = Vec::new();
        BLOB.encode(&mut out);
        assert_eq!(PluginMetadata::parse(&out[..15]), Err(PluginMetadataError::Head(15)));
        assert_eq!(PluginMetadata::parse(&out[..25]), Err(PluginMetadataError::Data { announced: 10, found: 9 }));
    }

    #[test]
    fn each_kind_has_its_stream() {
        let stream = |kind| PluginMetadata { kind, ..BLOB }.stream();
        assert_eq!(stream(0), Some(Stream::PLUGIN_META_BLOB));
        assert_eq!(stream(1), Some(Stream::PLUGIN_META_CATALOG));
        assert_eq!((stream(-1), stream(2)), (None, None));
    }
}
