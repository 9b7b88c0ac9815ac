//! The two scanners that decide which commands are well-formed, and blanks inside values
//! (reference 02 §2).
//!
//! A command is read from left to right with a cursor; the calls read like the pattern they stand
//! for. For `setbandwidth=%lld Job=%127s`:
//!
//! ```
//! use fd_bsock::scan::Lenient;
//! fn setbandwidth(line: &[u8]) -> Option<(i64, &[u8])> {
//!     let mut scan = Lenient::new(line);
//!     let limit = scan.text("setbandwidth=")?.i64();
//!     let job = scan.text(" Job=")?.word(127);
//!     Some((limit, job))
//! }
//! assert_eq!(setbandwidth(b"setbandwidth=1000 Job=b1\n"), Some((1000, &b"b1"[..])));
//! assert_eq!(setbandwidth(b"setbandwidth= Job=\n"), Some((0, &b""[..])));
//! assert_eq!(setbandwidth(b"setbandwith=1000 Job=b1\n"), None);
//! ```
//!
//! A mismatch is `None`, and the whole scan has failed then; what stands behind the pattern is
//! ignored.

/// Longest word of a `%s` without a width, in bytes.
pub const WORD_MAX: usize = 1000;

/// How a blank travels inside a value.
const BASHED: u8 = 0x01;

/// A value for the wire: each blank becomes 0x01 (reference 02 §2.3).
pub fn bash_spaces(value: &[u8]) -> Vec<u8> {
    value.iter().map(|&byte| if byte == b' ' { BASHED } else { byte }).collect()
}

/// A value from the wire: each 0x01 becomes a blank, whatever it was at the sender.
pub fn unbash_spaces(value: &[u8]) -> Vec<u8> {
    value.iter().map(|&byte| if byte == BASHED { b' ' } else { byte }).collect()
}

/// White space of both scanners: that of C's `isspace`.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

/// The lenient scanner, which nearly all commands go through (reference 02 §2.1).
///
/// White space in a pattern stands for zero or more; a word may be empty, a number without digits
/// is 0 and an overflow wraps.
#[derive(Clone, Debug)]
pub struct Lenient<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Lenient<'a> {
    /// Starts at the front of `line`.
    pub const fn new(line: &'a [u8]) -> Self {
        Self { cursor: Cursor { rest: line } }
    }

    /// Literal characters of the pattern; each white-space character in it skips any white space,
    /// also none.
    pub fn text(&mut self, pattern: &str) -> Option<&mut Self> {
        self.cursor.text(pattern, 0)?;
        Some(self)
    }

    /// `%s` with a width: at most `max` bytes up to white space or NUL, perhaps none.
    pub fn word(&mut self, max: usize) -> &'a [u8] {
        self.cursor.word(max)
    }

    /// `%c`: one byte, whatever it is; at the end of the line the NUL that C strings have there.
    pub fn byte(&mut self) -> u8 {
        self.cursor.byte().unwrap_or(0)
    }

    /// `%d`.
    pub fn i32(&mut self) -> i32 {
        truncate(self.i64())
    }

    /// `%u`.
    pub fn u32(&mut self) -> u32 {
        truncate(i64::from_ne_bytes(self.u64().to_ne_bytes())).cast_unsigned()
    }

    /// `%lld`, and `%ld`.
    pub fn i64(&mut self) -> i64 {
        self.cursor.signed().0
    }

    /// `%llu`, and `%lu`.
    pub fn u64(&mut self) -> u64 {
        self.cursor.unsigned().0
    }

    /// What stands behind the cursor.
    pub const fn rest(&self) -> &'a [u8] {
        self.cursor.rest
    }
}

/// The strict scanner of `Hello`, `testnetwork`, `pluginoptions` and some event lines
/// (reference 02 §2.2).
///
/// White space in a pattern stands for one or more; a number needs a digit.
#[derive(Clone, Debug)]
pub struct Strict<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Strict<'a> {
    /// Starts at the front of `line`.
    pub const fn new(line: &'a [u8]) -> Self {
        Self { cursor: Cursor { rest: line } }
    }

    /// Literal characters of the pattern; each white-space character in it skips all white space,
    /// at least one.
    pub fn text(&mut self, pattern: &str) -> Option<&mut Self> {
        self.cursor.text(pattern, 1)?;
        Some(self)
    }

    /// `%s` with a width: at most `max` bytes up to white space or NUL; fails at the end of the
    /// line.
    pub fn word(&mut self, max: usize) -> Option<&'a [u8]> {
        if self.cursor.rest.is_empty() { None } else { Some(self.cursor.word(max)) }
    }

    /// `%d`.
    pub fn i32(&mut self) -> Option<i32> {
        self.i64().map(truncate)
    }

    /// `%lld`, and `%ld`.
    pub fn i64(&mut self) -> Option<i64> {
        let (value, digits) = self.cursor.signed();
        (digits > 0).then_some(value)
    }

    /// `%llu`, and `%lu`.
    pub fn u64(&mut self) -> Option<u64> {
        let (value, digits) = self.cursor.unsigned();
        (digits > 0).then_some(value)
    }

    /// What stands behind the cursor.
    pub const fn rest(&self) -> &'a [u8] {
        self.cursor.rest
    }
}

/// The low half of a number, as C's scanners store it.
fn truncate(value: i64) -> i32 {
    let [.., a, b, c, d] = value.to_be_bytes();
    i32::from_be_bytes([a, b, c, d])
}

/// What both scanners do alike.
#[derive(Clone, Debug)]
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Matches a literal in which every white-space character stands for at least `least` in the
    /// line.
    fn text(&mut self, pattern: &str, least: usize) -> Option<()> {
        for &wanted in pattern.as_bytes() {
            if is_space(wanted) {
                if self.take_while(usize::MAX, is_space).len() < least {
                    return None;
                }
            } else if self.byte()? != wanted {
                return None;
            }
        }
        Some(())
    }

    fn word(&mut self, max: usize) -> &'a [u8] {
        self.take_while(max, |byte| byte != 0 && !is_space(byte))
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    /// Value and number of digits.
    fn signed(&mut self) -> (i64, usize) {
        let negative = self.rest.first() == Some(&b'-');
        if negative {
            self.byte();
        }
        let (value, digits) = self.unsigned();
        let value = value.cast_signed();
        (if negative { value.wrapping_neg() } else { value }, digits)
    }

    /// Value and number of digits.
    fn unsigned(&mut self) -> (u64, usize) {
        let digits = self.take_while(usize::MAX, |byte| byte.is_ascii_digit());
        let value = digits
            .iter()
            .fold(0_u64, |value, digit| value.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0'))));
        (value, digits.len())
    }

    fn take_while(&mut self, max: usize, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let len = self.rest.iter().take(max).take_while(|&&byte| wanted(byte)).count();
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests;
