//! One line of a FileSet taken apart (reference 03 §1.3).

/// The three parts of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line<'a> {
    /// First byte; 0 if the line is empty.
    pub code: u8,
    /// Second byte if it is not a blank, else a blank.
    pub sub: u8,
    /// The rest, after at most one blank. Never ends in white space.
    pub argument: &'a [u8],
}

impl<'a> Line<'a> {
    /// Takes a payload apart. Like the reference's C strings, a line ends at its first NUL.
    pub fn parse(payload: &'a [u8]) -> Self {
        let mut rest = trim_end(until_nul(payload));
        let code = take(&mut rest, |_| true).unwrap_or(0);
        let sub = take(&mut rest, |byte| byte != b' ').unwrap_or(b' ');
        take(&mut rest, |byte| byte == b' ');
        Self { code, sub, argument: rest }
    }
}

/// Takes the first byte if there is one and it fits.
fn take(rest: &mut &[u8], wanted: impl Fn(u8) -> bool) -> Option<u8> {
    let (&first, after) = rest.split_first()?;
    if !wanted(first) {
        return None;
    }
    *rest = after;
    Some(first)
}

/// The part before the first NUL byte.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or(text)
}

/// `text` without the white space of the C locale at its end.
pub(crate) fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [front @ .., b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r'] = text {
        text = front;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(payload: &[u8]) -> (char, char, &[u8]) {
        let line = Line::parse(payload);
        (char::from(line.code), char::from(line.sub), line.argument)
    }

    #[test]
    fn code_sub_code_and_argument() {
        assert_eq!(parts(b"F /t"), ('F', ' ', b"/t".as_slice()));
        assert_eq!(parts(b"F /t \t\r\n\x0b\x0c"), ('F', ' ', b"/t".as_slice()));
        assert_eq!(parts(b"F  /x"), ('F', ' ', b" /x".as_slice()));
        assert_eq!(parts(b"FD /x"), ('F', 'D', b"/x".as_slice()));
        assert_eq!(parts(b"RD rd\n"), ('R', 'D', b"rd".as_slice()));
        assert_eq!(parts(b"FDx"), ('F', 'D', b"x".as_slice()));
    }

    #[test]
    fn empty_names_and_empty_lines() {
        assert_eq!(parts(b"F\n"), ('F', ' ', b"".as_slice()));
        assert_eq!(parts(b"F \n"), ('F', ' ', b"".as_slice()));
        assert_eq!(parts(b"N\n"), ('N', ' ', b"".as_slice()));
        assert_eq!(parts(b""), ('\0', ' ', b"".as_slice()));
        assert_eq!(parts(b" \n"), ('\0', ' ', b"".as_slice()));
    }

    #[test]
    fn a_nul_ends_the_line() {
        assert_eq!(parts(b"F /a \0/b\n"), ('F', ' ', b"/a".as_slice()));
    }
}
