//! Decimal numbers in record texts: writing without allocation, and the reference's tolerant
//! reading.
//!
//! The base-64 numbers of LStat are in `number`.

/// Appends `value` in decimal.
pub(crate) fn push_u64(out: &mut Vec<u8>, value: u64) {
    let mut buffer = [0_u8; 20];
    let mut rest = value;
    let mut used = 0;
    for place in buffer.iter_mut().rev() {
        *place = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        used += 1;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(buffer.get(buffer.len() - used..).unwrap_or_default());
}

/// Appends `value` in decimal, with a `-` in front if it is negative.
pub(crate) fn push_i64(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_u64(out, value.unsigned_abs());
}

/// Takes an optional `-` and any number of digits from the front of `text`; no digits count as 0,
/// and a value that does not fit becomes the end of the range (reference 05 §1.2).
pub(crate) fn take_i64(text: &[u8]) -> (i64, &[u8]) {
    let (negative, mut rest) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let mut value = 0_i64;
    while let Some((digit @ b'0'..=b'9', after)) = rest.split_first() {
        value = value.saturating_mul(10).saturating_add(i64::from(*digit - b'0'));
        rest = after;
    }
    (if negative { value.saturating_neg() } else { value }, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(value: i64) -> Vec<u8> {
        let mut out = Vec::new();
        push_i64(&mut out, value);
        out
    }

    #[test]
    fn numbers_are_written_like_printf_writes_them() {
        for value in [0, 1, 9, 10, 99, 100, -1, -10, i64::MAX, i64::MIN, 1_234_567_890] {
            assert_eq!(decimal(value), value.to_string().into_bytes());
        }
        let mut out = b"x".to_vec();
        push_u64(&mut out, u64::MAX);
        assert_eq!(out, b"x18446744073709551615");
    }

    #[test]
    fn reading_is_tolerant_and_bounded() {
        assert_eq!(take_i64(b"12 x"), (12, &b" x"[..]));
        assert_eq!(take_i64(b"-7"), (-7, &b""[..]));
        assert_eq!(take_i64(b"x"), (0, &b"x"[..]));
        assert_eq!(take_i64(b""), (0, &b""[..]));
        assert_eq!(take_i64(b"99999999999999999999"), (i64::MAX, &b""[..]));
    }
}
