//! Names out of a list file or a program's output, cut as the reference's `fgets` cuts them
//! (reference 03 §1.5).

use crate::parse::line::{trim_end, until_nul};

/// Longest piece that one `fgets` takes, newline included.
const LONGEST_PIECE: usize = 999;

/// Cuts a stream of bytes into names. Holds at most one piece, however long the stream's lines are.
#[derive(Default, Debug)]
pub(crate) struct NameSplitter {
    piece: Vec<u8>,
    /// The last byte was a carriage return that ended a line: a newline behind it belongs to it.
    is_behind_return: bool,
}

impl NameSplitter {
    /// A splitter at the start of a stream.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the stream and calls `name` with every complete name. White space at
    /// a name's end is cut; a name may be empty; a line of 1000 bytes or more is several names. A
    /// carriage return ends a line, too.
    pub(crate) fn push(&mut self, data: &[u8], mut name: impl FnMut(&[u8])) {
        for &byte in data {
            if std::mem::replace(&mut self.is_behind_return, byte == b'\r') && byte == b'\n' {
                continue;
            }
            self.piece.push(byte);
            if matches!(byte, b'\n' | b'\r') || self.piece.len() >= LONGEST_PIECE {
                self.finish(&mut name);
            }
        }
    }

    /// The end of the stream: returns the last name if the stream did not end with a newline.
    pub(crate) fn finish(&mut self, mut name: impl FnMut(&[u8])) {
        if !self.piece.is_empty() {
            name(trim_end(until_nul(&self.piece)));
            self.piece.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut splitter = NameSplitter::new();
        for chunk in chunks {
            splitter.push(chunk, |name| all.push(name.to_vec()));
        }
        splitter.finish(|name| all.push(name.to_vec()));
        all
    }

    #[test]
    fn lines_become_names() {
        assert_eq!(names(&[b"/a\n/b \r\n\n  /lead\n/last"]), [&b"/a"[..], b"/b", b"", b"  /lead", b"/last"]);
        assert_eq!(names(&[b""]), Vec::<Vec<u8>>::new());
        assert_eq!(names(&[b"\n"]), [b""]);
    }

    #[test]
    fn a_carriage_return_ends_a_line_with_or_without_a_newline() {
        assert_eq!(names(&[b"/a\r/b\r\r\n/c\r", b"\n \r\n/d\r"]), [&b"/a"[..], b"/b", b"", b"/c", b"", b"/d"]);
    }

    #[test]
    fn names_do_not_depend_on_the_borders_of_chunks() {
        assert_eq!(names(&[b"/a", b"b\n/", b"c"]), [&b"/ab"[..], b"/c"]);
    }

    #[test]
    fn long_lines_are_cut_where_fgets_cuts_them() {
        let long = [b'x'; 1000];
        assert_eq!(names(&[&long, b"\n"]), [&long[..999], b"x"]);
        // 999 bytes fill the buffer; the newline alone is the next piece.
        assert_eq!(names(&[&long[..999], b"\n"]), [&long[..999], b""]);
        assert_eq!(names(&[&long[..998], b"\n/b"]), [&long[..998], b"/b"]);
    }

    #[test]
    fn a_nul_ends_a_name() {
        assert_eq!(names(&[b"/a\0junk\n/b"]), [b"/a", b"/b"]);
    }
}
