//! The two record headers: the one a File Daemon sends, and the one a Storage Daemon sends back.

use crate::text::decimal;
use crate::vocabulary::stream::Stream;

/// Appends the header of a stream as a backup sends it, for example `1 2 1000` (reference 04 §2).
///
/// `size` is the expected length: that of the file for data streams and for session data, 0 for the
/// others, −1 where a plugin cannot tell it.
pub fn stream_header(out: &mut Vec<u8>, file_index: i32, stream: Stream, size: i64) {
    decimal::push_i64(out, i64::from(file_index));
    out.push(b' ');
    decimal::push_u64(out, u64::from(stream.number()));
    out.push(b' ');
    decimal::push_i64(out, size);
}

/// The header of a record as the Storage Daemon sends it in a restore (reference 05 §2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordHeader {
    /// Session that wrote the record.
    pub vol_session_id: i64,
    /// When that session began.
    pub vol_session_time: i64,
    /// FileIndex of the record.
    pub file_index: i64,
    /// The stream, with its flag bits.
    pub stream: Stream,
    /// Announced length of the record in bytes; it may differ from the actual one.
    pub size: i64,
}

impl RecordHeader {
    /// Whether the other record is of the same file of the same backup.
    pub const fn is_of_file_of(&self, other: &Self) -> bool {
        self.vol_session_id == other.vol_session_id
            && self.vol_session_time == other.vol_session_time
            && self.file_index == other.file_index
    }

    /// Reads `rechdr <VolSessionId> <VolSessionTime> <FileIndex> <Stream> <Size>` as tolerantly as
    /// the reference: only the word is required, `None` without it; a missing number counts as 0.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut rest = text.strip_prefix(b"rechdr")?;
        let mut numbers = [0_i64; 5];
        for number in &mut numbers {
            (*number, rest) = decimal::take_i64(rest.trim_ascii_start());
        }
        let [vol_session_id, vol_session_time, file_index, stream, size] = numbers;
        // Numbers have 32 bits on the volume; a larger one is no stream.
        let stream = Stream::new(u32::try_from(stream).unwrap_or_default());
        Some(Self { vol_session_id, vol_session_time, file_index, stream, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_headers_are_three_decimal_numbers() {
        let mut out = Vec::new();
        stream_header(&mut out, 1, Stream::FILE_DATA, 1000);
        assert_eq!(out, b"1 2 1000");
        out.clear();
        stream_header(&mut out, i32::MAX, Stream::new(Stream::BIT_OFFSETS | 2), -1);
        assert_eq!(out, b"2147483647 67108866 -1");
    }

    #[test]
    fn record_headers_are_read_tolerantly() {
        let header = RecordHeader::parse(b"rechdr 1 1795226230 3 2 12").unwrap();
        assert_eq!(
            header,
            RecordHeader {
                vol_session_id: 1,
                vol_session_time: 1_795_226_230,
                file_index: 3,
                stream: Stream::FILE_DATA,
                size: 12
            }
        );
        assert_eq!(RecordHeader::parse(b"rechdr  1\t2   -3 4 5 6\n").unwrap().file_index, -3);
        assert_eq!(RecordHeader::parse(b"rechdr").unwrap().size, 0);
        assert_eq!(RecordHeader::parse(b"rechd 1 2 3 4 5"), None);
        assert_eq!(RecordHeader::parse(b""), None);
        assert_eq!(RecordHeader::parse(b"rechdr 1 2 3 99999999999 5").unwrap().stream, Stream::NONE);
    }
}
