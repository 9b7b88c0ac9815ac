//! The file contents in the stream of a Windows client's `BackupRead` (reference 05 §7.3).
//!
//! The stream is a sequence of parts: 20 bytes of header, a name, the contents. Only the contents
//! of parts of kind 1 are the file's data. Parts may begin and end anywhere in a record.

/// Length of the header of a part.
const HEADER: usize = 20;
/// The kind of part that holds the file's data.
const KIND_DATA: i32 = 1;

/// Takes the parts of one file apart.
#[derive(Default, Debug)]
pub(crate) struct Win32Stream {
    header: Vec<u8>,
    /// Bytes of the name that are still to come.
    name: u64,
    /// Bytes of the contents that are still to come.
    contents: u64,
    is_data: bool,
    /// A part had a negative length: the rest of the file has no meaning.
    broken: bool,
}

impl Win32Stream {
    /// Whether the data ended within a part, or where a length made no sense.
    pub(crate) fn is_torn(&self) -> bool {
        self.broken || !self.header.is_empty() || self.name > 0 || self.contents > 0
    }

    /// Takes the next piece of file data off the front of `stream`; `None` at its end.
    pub(crate) fn next_data<'a>(&mut self, stream: &mut &'a [u8]) -> Option<&'a [u8]> {
        while !stream.is_empty() && !self.broken {
            if self.name > 0 {
                self.name -= take(stream, self.name).len() as u64;
            } else if self.contents > 0 {
                let piece = take(stream, self.contents);
                self.contents -= piece.len() as u64;
                if self.is_data {
                    return Some(piece);
                }
            } else {
                let missing = HEADER - self.header.len();
                self.header.extend_from_slice(take(stream, missing as u64));
                self.begin_part();
            }
        }
        None
    }

    /// Reads the header if it is complete.
    fn begin_part(&mut self) {
        let Ok([k0, k1, k2, k3, _, _, _, _, s0, s1, s2, s3, s4, s5, s6, s7, n0, n1, n2, n3]) =
            <[u8; HEADER]>::try_from(self.header.as_slice())
        else {
            return;
        };
        self.header.clear();
        self.is_data = i32::from_le_bytes([k0, k1, k2, k3]) == KIND_DATA;
        let size = u64::try_from(i64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]));
        let name = u64::try_from(i32::from_le_bytes([n0, n1, n2, n3]));
        match (size, name) {
            (Ok(size), Ok(name)) => (self.contents, self.name) = (size, name),
            _ => self.broken = true,
        }
    }
}

/// Takes up to `most` bytes off the front.
fn take<'a>(stream: &mut &'a [u8], most: u64) -> &'a [u8] {
    let length = usize::try_from(most).unwrap_or(usize::MAX).min(stream.len());
    let (taken, rest) = stream.split_at_checked(length).unwrap_or((stream, &[]));
    *stream = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: i32, name: &[u8], contents: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend_from_slice(&0_i32.to_le_bytes());
        bytes.extend_from_slice(&i64::try_from(contents.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&i32::try_from(name.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(contents);
        bytes
    }

    fn data(stream: &[u8], record: usize) -> Vec<u8> {
        let mut filter = Win32Stream::default();
        let mut found = Vec::new();
        for mut piece in stream.chunks(record) {
            while let Some(data) = filter.next_data(&mut piece) {
                found.extend_from_slice(data);
            }
        }
        found
    }

    #[test]
    fn only_the_contents_of_data_parts_are_returned_for_any_record_size() {
        let stream =
            [part(3, b"", b"security"), part(1, b"", b"hello "), part(4, b"name", b"other"), part(1, b"n", b"world")]
                .concat();
        for record in 1..=stream.len() {
            assert_eq!(data(&stream, record), b"hello world", "records of {record}");
        }
    }

    #[test]
    fn empty_parts_and_negative_lengths_do_no_harm() {
        let stream = [part(1, b"", b""), part(1, b"", b"x")].concat();
        assert_eq!(data(&stream, 7), b"x");
        let mut broken = part(1, b"", b"x");
        broken[15] = 0x80;
        assert_eq!(data(&[part(1, b"", b"y"), broken, part(1, b"", b"z")].concat(), 9), b"y");
    }
}
