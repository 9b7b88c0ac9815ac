//! The kernel's table of mounts.

/// A field of `mountinfo`, in which blanks, tabs, newlines, backslashes and the like are written as
/// `\040` and so on.
pub fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(field.len());
    let mut rest = field;
    loop {
        rest = match rest {
            [] => return text,
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                text.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            [byte, rest @ ..] => {
                text.push(*byte);
                rest
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_escapes_stand_for_themselves() {
        assert_eq!(unescaped(b"a\\1"), b"a\\1");
        assert_eq!(unescaped(b"\\777\\011"), b"\\777\t");
        assert_eq!(unescaped(b"\\x\\04"), b"\\x\\04");
    }
}
