//! The stock daemon's own printf, which formats the messages of plugins (reference 07 §3.1). It
//! differs from the C library's: `%e` and `%g` are `%f`, an address is a number without `0x`, and a
//! null text is `<NULL>`.

use std::iter::Peekable;

/// What a null pointer is as a text.
const NO_TEXT: &[u8] = b"<NULL>";
/// The most columns and digits that a format may ask for.
const MOST: usize = 2000;

/// The arguments behind a format.
pub(crate) trait Arguments {
    /// The next integer or address.
    fn word(&mut self) -> u64;
    /// The next `double`.
    fn double(&mut self) -> f64;
    /// The next `long double`.
    fn long_double(&mut self) -> f64;
    /// The text at this address, which is not null: up to its NUL, and at most so many bytes.
    fn text(&self, address: u64, most: usize) -> Vec<u8>;
}

/// How many bytes an integer has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Short,
    Int,
    Long,
    LongDouble,
}

/// What stands between `%` and the conversion.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each flag may be there or not")]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// The text that a format makes of its arguments, at most `most` bytes.
pub(crate) fn format(format: &[u8], most: usize, arguments: &mut dyn Arguments) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = format.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if out.len() >= most {
            break;
        }
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut spec = Spec::default();
        while let Some(flag) = bytes.next_if(|byte| b"-+ 0#".contains(byte)) {
            match flag {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'0' => spec.zero = true,
                _ => spec.alternate = true,
            }
        }
        let width = number(&mut bytes, arguments);
        spec.left |= width < 0;
        spec.width = usize::try_from(width.unsigned_abs()).unwrap_or(MOST).min(MOST);
        if bytes.next_if_eq(&b'.').is_some() {
            spec.precision = usize::try_from(number(&mut bytes, arguments)).ok().map(|precision| precision.min(MOST));
        }
        let mut size = Size::Int;
        while let Some(modifier) = bytes.next_if(|byte| b"hlqzL".contains(byte)) {
            size = match modifier {
                b'h' => Size::Short,
                b'L' => Size::LongDouble,
                _ => Size::Long,
            };
        }
        match bytes.next() {
            Some(conversion) => spec.convert(conversion, size, arguments, &mut out),
            None => break,
        }
    }
    out.truncate(most);
    out
}

/// A width or a precision: digits, or `*` for an argument.
fn number(bytes: &mut Peekable<impl Iterator<Item = u8>>, arguments: &mut dyn Arguments) -> i64 {
    if bytes.next_if_eq(&b'*').is_some() {
        return i64::from(int(arguments.word()));
    }
    let mut value: i64 = 0;
    while let Some(digit) = bytes.next_if(u8::is_ascii_digit) {
        value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    }
    value
}

/// The lower half of a word.
fn int(word: u64) -> i32 {
    let [first, second, third, fourth, ..] = word.to_le_bytes();
    i32::from_le_bytes([first, second, third, fourth])
}

/// The lowest two bytes of a word.
fn short(word: u64) -> i16 {
    let [first, second, ..] = word.to_le_bytes();
    i16::from_le_bytes([first, second])
}

impl Spec {
    fn convert(&self, conversion: u8, size: Size, arguments: &mut dyn Arguments, out: &mut Vec<u8>) {
        match conversion {
            b'%' => out.push(b'%'),
            b'd' | b'i' => {
                let word = arguments.word();
                let value = match size {
                    Size::Short => i64::from(short(word)),
                    Size::Int => i64::from(int(word)),
                    Size::Long | Size::LongDouble => word.cast_signed(),
                };
                self.integer(self.sign(value < 0), value.unsigned_abs().to_string().into_bytes(), out);
            }
            b'u' | b'o' | b'x' | b'X' => {
                let word = arguments.word();
                let value = match size {
                    Size::Short => word & 0xFFFF,
                    Size::Int => word & 0xFFFF_FFFF,
                    Size::Long | Size::LongDouble => word,
                };
                let (prefix, digits): (&[u8], _) = match conversion {
                    b'u' => (b"", value.to_string()),
                    b'o' => (if self.alternate { b"0" } else { b"" }, format!("{value:o}")),
                    b'x' => (if self.alternate && value != 0 { b"0x" } else { b"" }, format!("{value:x}")),
                    _ => (if self.alternate && value != 0 { b"0X" } else { b"" }, format!("{value:X}")),
                };
                self.integer(prefix, digits.into_bytes(), out);
            }
            b'p' => self.integer(b"", format!("{:x}", arguments.word()).into_bytes(), out),
            b'c' => {
                let [byte, ..] = arguments.word().to_le_bytes();
                self.pad(&[], vec![byte], false, out);
            }
            b's' => {
                let most = self.precision.unwrap_or(MOST);
                let text = match arguments.word() {
                    0 => NO_TEXT.iter().copied().take(most).collect(),
                    address => arguments.text(address, most),
                };
                self.pad(&[], text, false, out);
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => {
                let value = if size == Size::LongDouble { arguments.long_double() } else { arguments.double() };
                let digits = format!("{:.*}", self.precision.unwrap_or(6), value.abs());
                self.pad(self.sign(value.is_sign_negative()), digits.into_bytes(), self.zero, out);
            }
            // The count of bytes so far goes nowhere.
            b'n' => drop(arguments.word()),
            other => out.push(other),
        }
    }

    fn sign(&self, negative: bool) -> &'static [u8] {
        match (negative, self.plus, self.space) {
            (true, ..) => b"-",
            (_, true, _) => b"+",
            (_, _, true) => b" ",
            _ => b"",
        }
    }

    fn integer(&self, sign: &[u8], digits: Vec<u8>, out: &mut Vec<u8>) {
        let zeros = self.precision.map_or(0, |precision| precision.saturating_sub(digits.len()));
        let digits = [vec![b'0'; zeros], digits].concat();
        self.pad(sign, digits, self.zero && self.precision.is_none(), out);
    }

    fn pad(&self, sign: &[u8], text: Vec<u8>, zeros: bool, out: &mut Vec<u8>) {
        let missing = self.width.saturating_sub(sign.len() + text.len());
        if !self.left && !zeros {
            out.extend(std::iter::repeat_n(b' ', missing));
        }
        out.extend_from_slice(sign);
        if !self.left && zeros {
            out.extend(std::iter::repeat_n(b'0', missing));
        }
        out.extend(text);
        if self.left {
            out.extend(std::iter::repeat_n(b' ', missing));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given {
        words: Vec<u64>,
        doubles: Vec<f64>,
    }

    impl Arguments for Given {
        fn word(&mut self) -> u64 {
            self.words.remove(0)
        }

        fn double(&mut self) -> f64 {
            self.doubles.remove(0)
        }

        fn long_double(&mut self) -> f64 {
            self.double()
        }

        fn text(&self, address: u64, most: usize) -> Vec<u8> {
            b"abcdef".iter().copied().take(most.min(usize::try_from(address).unwrap())).collect()
        }
    }

    fn made(text: &str, words: &[i64], doubles: &[f64]) -> String {
        let words = words.iter().map(|word| word.cast_unsigned()).collect();
        let mut arguments = Given { words, doubles: doubles.to_vec() };
        String::from_utf8(format(text.as_bytes(), 1999, &mut arguments)).unwrap()
    }

    #[test]
    fn integers_have_their_size_width_and_sign() {
        assert_eq!(made("%d|%5d|%-5d|%05d|%+d|% d", &[-1, 2, 3, 4, 5, 6], &[]), "-1|    2|3    |00004|+5| 6");
        assert_eq!(
            made("%d %ld %lld %qd %zd %hd", &[1 << 32, 1 << 33, -1, 7, 8, 65_537], &[]),
            "0 8589934592 -1 7 8 1"
        );
        assert_eq!(made("%x %X %#x %o %u", &[255, 255, 255, 8, -1], &[]), "ff FF 0xff 10 4294967295");
        assert_eq!(made("%.3d %*d %-*d|", &[7, 4, 1, 4, 1], &[]), "007    1 1   |");
    }

    #[test]
    fn texts_are_cut_and_padded() {
        assert_eq!(
            made("%s|%.2s|%8s|%-8s|%s|%c%%", &[6, 6, 6, 6, 0, 120], &[]),
            "abcdef|ab|  abcdef|abcdef  |<NULL>|x%"
        );
    }

    #[test]
    fn all_floating_point_conversions_are_alike() {
        assert_eq!(
            made("%e %.3f %g %8.1f %-6.1f|", &[], &[1.5, 2.25, 0.5, -1.0, 2.0]),
            "1.500000 2.250 0.500000     -1.0 2.0   |"
        );
        assert_eq!(made("%p %p", &[0, 4096], &[]), "0 1000");
    }

    #[test]
    fn a_broken_format_ends_the_text() {
        assert_eq!(made("a%", &[], &[]), "a");
        assert_eq!(made("a%5", &[], &[]), "a");
        assert_eq!(made("%99999999999999999999d", &[1], &[]).len(), 1999);
        assert_eq!(made("%y", &[], &[]), "y");
    }
}
