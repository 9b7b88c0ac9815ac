//! The base-64 numbers of LStat (reference 04 §6.2). Most significant digit first, no padding: not
//! MIME's base 64.

/// The digits, in the order of their values.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Digits that a 64 bit number can have.
const MAX_DIGITS: usize = 11;

/// The value of each byte as a digit; 64 for bytes that are not digits.
const VALUES: [u8; 256] = {
    let mut values = [64_u8; 256];
    let mut value = 0_u8;
    while value < 64 {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler: an index out of range would not build")]
        {
            values[DIGITS[value as usize] as usize] = value;
        }
        value += 1;
    }
    values
};

/// Appends one number.
pub(crate) fn push(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    let mut rest = value.unsigned_abs();
    let mut buffer = [0_u8; MAX_DIGITS];
    let mut used = 0;
    for place in buffer.iter_mut().rev() {
        *place = DIGITS.get((rest & 63) as usize).copied().unwrap_or_default();
        rest >>= 6;
        used += 1;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(buffer.get(MAX_DIGITS - used..).unwrap_or_default());
}

/// Reads one number that is all of `text`. An empty text counts as 0, as in the reference.
///
/// `None` if a byte is not a digit or the value needs more than 64 bits.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let mut value = 0_u64;
    for byte in digits {
        let digit = VALUES.get(usize::from(*byte)).copied().filter(|digit| *digit < 64)?;
        if value >> 58 != 0 {
            return None;
        }
        value = (value << 6) | u64::from(digit);
    }
    // Unsigned 64 bit fields (a device number) travel as the signed number of the same bits, so
    // both readings of the top bit are meant.
    let value = value.cast_signed();
    Some(if negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference() {
        for (value, text) in [
            (0, "A"),
            (63, "/"),
            (64, "BA"),
            (-1, "-B"),
            (-2_147_483_648, "-CAAAAA"),
            (4_294_967_294, "D////+"),
            (4_294_967_295, "D/////"),
            (1_700_000_000, "BlU/EA"),
            (10_413_792_000, "JstdsA"),
        ] {
            let mut out = Vec::new();
            push(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), text);
            assert_eq!(parse(text.as_bytes()), Some(value));
        }
    }

    #[test]
    fn the_ends_of_the_range_survive() {
        for value in [i64::MAX, i64::MIN, i64::MIN + 1, u64::MAX.cast_signed()] {
            let mut out = Vec::new();
            push(&mut out, value);
            assert_eq!(parse(&out), Some(value));
        }
    }

    #[test]
    fn text_that_is_not_a_number_is_refused() {
        assert_eq!(parse(b""), Some(0));
        assert_eq!(parse(b"A.B"), None);
        assert_eq!(parse(b"--B"), None);
        assert_eq!(parse(b"\xff"), None);
        assert_eq!(parse(b"////////////"), None);
    }
}
