//! One file that is being read: its lines, and the lexer's place in the line (reference 06 §1.2).
//!
//! Without any notion of tokens; it only keeps the lexer's state, which is restored when an include
//! ends.

use std::rc::Rc;

/// Bytes of one line; what follows is the next line.
const MAX_LINE: usize = 1_003_992;

/// One step through a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Char {
    Byte(u8),
    EndOfLine,
    EndOfFile,
    /// An end of line that was pushed back and comes again.
    Again,
}

impl Char {
    /// ASCII blank, TAB, LF, VT, FF, CR.
    pub(crate) const fn is_space(self) -> bool {
        matches!(self, Self::Byte(b' ' | b'\t'..=b'\r'))
    }
}

/// The state of the lexer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Between,
    Comment,
    Number,
    Identifier,
    String,
    Quoted,
    Include,
    IncludeQuoted,
}

/// A file that is being read, with everything that is restored when an include ends.
pub(crate) struct Input {
    pub(crate) name: Vec<u8>,
    pub(crate) bytes: Rc<Vec<u8>>,
    /// Where the next line begins in `bytes`.
    next: usize,
    pub(crate) line: Vec<u8>,
    pub(crate) line_no: u32,
    pub(crate) col_no: usize,
    pub(crate) current: Char,
    pub(crate) state: State,
    pub(crate) text: Vec<u8>,
    pub(crate) begin_line: u32,
    pub(crate) begin_column: usize,
}

impl Input {
    pub(crate) fn new(name: Vec<u8>, bytes: Rc<Vec<u8>>) -> Self {
        Self {
            name,
            bytes,
            next: 0,
            line: Vec::new(),
            line_no: 0,
            col_no: 0,
            current: Char::EndOfLine,
            state: State::Between,
            text: Vec::new(),
            begin_line: 0,
            begin_column: 0,
        }
    }

    /// Reads the next physical line; `false` at the end of the file. A CR, alone or before LF,
    /// counts as LF; a NUL hides the rest of its line.
    pub(crate) fn read_line(&mut self) -> bool {
        self.line.clear();
        let rest = self.bytes.get(self.next..).unwrap_or_default();
        if rest.is_empty() {
            return false;
        }
        let limit = rest.len().min(MAX_LINE);
        let head = rest.get(..limit).unwrap_or_default();
        if let Some(end) = head.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(head.get(..end).unwrap_or_default());
            self.line.push(b'\n');
            let crlf = head.get(end..).is_some_and(|tail| tail.starts_with(b"\r\n"));
            self.next += end + if crlf { 2 } else { 1 };
        } else {
            self.line.extend_from_slice(head);
            self.next += limit;
        }
        if let Some(nul) = self.line.iter().position(|byte| *byte == 0) {
            self.line.truncate(nul);
        }
        self.line_no = self.line_no.saturating_add(1);
        self.col_no = 0;
        true
    }

    /// The next character of the current line.
    pub(crate) fn next_in_line(&mut self) -> Char {
        self.current = match self.line.get(self.col_no) {
            Some(byte) => {
                self.col_no += 1;
                Char::Byte(*byte)
            }
            None => Char::EndOfLine,
        };
        self.current
    }

    /// The current character comes again.
    pub(crate) fn push_back(&mut self) {
        if self.current == Char::EndOfLine {
            self.current = Char::Again;
        } else {
            self.col_no = self.col_no.saturating_sub(1);
        }
    }

    /// A token begins at the current character.
    pub(crate) fn begin(&mut self, state: State) {
        self.text.clear();
        self.state = state;
        self.begin_line = self.line_no;
        self.begin_column = self.col_no.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut input = Input::new(Vec::new(), Rc::new(bytes.to_vec()));
        let mut lines = Vec::new();
        while input.read_line() {
            lines.push(input.line.clone());
        }
        lines
    }

    #[test]
    fn lines_end_at_lf_cr_or_both_and_nul_hides_the_rest() {
        assert_eq!(lines(b"a\nb\r\nc\rd"), [b"a\n".as_slice(), b"b\n", b"c\n", b"d"]);
        assert_eq!(lines(b"a\0b\nc"), [b"a".as_slice(), b"c"]);
        assert_eq!(lines(b"\r\r\n"), [b"\n", b"\n"]);
        assert_eq!(lines(b""), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn an_endless_line_is_cut() {
        let cut: Vec<usize> = lines(&vec![b'x'; 2_500_000]).iter().map(Vec::len).collect();
        assert_eq!(cut, [1_003_992, 1_003_992, 492_016]);
    }

    #[test]
    fn the_end_of_a_line_can_be_pushed_back() {
        let mut input = Input::new(Vec::new(), Rc::new(b"a\n".to_vec()));
        assert!(input.read_line());
        assert_eq!([input.next_in_line(), input.next_in_line()], [Char::Byte(b'a'), Char::Byte(b'\n')]);
        input.push_back();
        assert_eq!([input.next_in_line(), input.next_in_line()], [Char::Byte(b'\n'), Char::EndOfLine]);
        input.push_back();
        assert_eq!((input.current, input.next_in_line()), (Char::Again, Char::EndOfLine));
    }
}
