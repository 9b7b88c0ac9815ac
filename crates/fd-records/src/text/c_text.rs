//! Texts that end at their first NUL.

/// The text up to its first NUL: the fields of a record are separated by NULs, and a plugin's text
/// must not end one early.
pub(crate) fn c_text(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_at_its_first_nul() {
        assert_eq!(c_text(b"a\0b\0"), b"a");
        assert_eq!(c_text(b"ab"), b"ab");
        assert_eq!(c_text(b""), b"");
    }
}
