//! Bytes of real records, written in the tests as hexadecimal text.

/// The bytes of a hexadecimal text; blanks are skipped.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| u8::try_from(c.to_digit(16).unwrap()).unwrap()).collect();
    assert_eq!(digits.len() % 2, 0);
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
