//! Digests as text: standard base 64 without padding, as in the catalog, in accurate lists and in
//! verify packets (reference 04 §9, 05 §18.3).

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of a digest.
pub fn of(digest: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(digest.len().div_ceil(3) * 4);
    for chunk in digest.chunks(3) {
        let mut bits = 0_u32;
        for index in 0..3 {
            bits = bits << 8 | u32::from(chunk.get(index).copied().unwrap_or_default());
        }
        for digit in 0..=chunk.len() {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(DIGITS.get(value as usize).copied().unwrap_or_default());
        }
    }
    text
}

/// The bytes of a text; padding is accepted. `None` if it is not base 64.
pub fn parse(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let mut digest = Vec::with_capacity(text.len());
    for chunk in text.get(..end)?.chunks(4) {
        let mut bits = 0_u32;
        for index in 0..4 {
            bits = bits << 6 | chunk.get(index).map_or(Some(0), |byte| value_of(*byte))?;
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        digest.extend_from_slice(bytes.get(..chunk.len().checked_sub(1).filter(|count| *count > 0)?)?);
    }
    Some(digest)
}

fn value_of(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_bytes::hex;

    fn text(digest: &[u8]) -> String {
        String::from_utf8(of(digest)).unwrap()
    }

    #[test]
    fn digests_of_the_reference_have_their_texts() {
        assert_eq!(text(&hex("d41d8cd98f00b204e9800998ecf8427e")), "1B2M2Y8AsgTpgAmY7PhCfg");
        assert_eq!(parse(b"1B2M2Y8AsgTpgAmY7PhCfg").unwrap(), hex("d41d8cd98f00b204e9800998ecf8427e"));
        assert_eq!(parse(b"1B2M2Y8AsgTpgAmY7PhCfg==").unwrap(), hex("d41d8cd98f00b204e9800998ecf8427e"));
    }

    #[test]
    fn the_lengths_are_those_of_the_reference() {
        for (bytes, digits) in [(16, 22), (20, 27), (32, 43), (64, 86), (8, 11), (0, 0)] {
            assert_eq!(text(&vec![0xa5; bytes]).len(), digits);
        }
    }

    #[test]
    fn digests_of_every_length_survive_a_round_trip() {
        for length in 0..40_u8 {
            let digest: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
            assert_eq!(parse(text(&digest).as_bytes()), Some(digest));
        }
    }

    #[test]
    fn text_that_is_not_base_64_is_refused() {
        assert_eq!(parse(b"AB-D"), None);
        assert_eq!(parse(b"ABCDE"), None);
        assert_eq!(parse(b"\xff\xff"), None);
        assert_eq!(parse(b"===="), Some(Vec::new()));
    }
}
