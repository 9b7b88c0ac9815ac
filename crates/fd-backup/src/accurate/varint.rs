//! Numbers of variable length: seven bits a byte, the lowest first; the top bit means that more
//! follow.

/// Appends a number.
pub(super) fn push(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// Appends a signed number; small absolute values are short.
pub(super) fn push_signed(out: &mut Vec<u8>, value: i64) {
    push(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Takes a number off the front of `bytes`. Bytes that [`push`] has not written give some number,
/// never a panic.
pub(super) fn take(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or_default();
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }
    value
}

/// Takes a number of [`push_signed`].
pub(super) fn take_signed(bytes: &mut &[u8]) -> i64 {
    let value = take(bytes);
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decoded_unchanged() {
        let mut out = Vec::new();
        let numbers = [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX];
        let signed = [0, -1, 1, -64, 64, i64::MIN, i64::MAX];
        for number in numbers {
            push(&mut out, number);
        }
        for number in signed {
            push_signed(&mut out, number);
        }
        let mut rest = out.as_slice();
        for number in numbers {
            assert_eq!(take(&mut rest), number);
        }
        for number in signed {
            assert_eq!(take_signed(&mut rest), number);
        }
        assert!(rest.is_empty());
        assert_eq!(take(&mut rest), 0);
    }

    #[test]
    fn small_numbers_take_one_byte() {
        let mut out = Vec::new();
        push(&mut out, 127);
        push_signed(&mut out, -64);
        assert_eq!(out.len(), 2);
    }
}
