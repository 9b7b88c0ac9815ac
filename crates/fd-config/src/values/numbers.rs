//! Numbers, durations and speeds as the file spells them (reference 06 §2.6 – §2.8). Pure text to
//! number.

/// A duration that can't be read: the part of the text that was not converted.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct BadDuration(pub(crate) Vec<u8>);

/// Unit words in the order in which a prefix is looked up, with their seconds.
const DURATION_UNITS: [(&[u8], f64); 10] = [
    (b"n", 60.0),
    (b"seconds", 1.0),
    (b"months", 2_592_000.0),
    (b"minutes", 60.0),
    (b"mins", 60.0),
    (b"hours", 3_600.0),
    (b"days", 86_400.0),
    (b"weeks", 604_800.0),
    (b"quarters", 7_862_400.0),
    (b"years", 31_536_000.0),
];

/// Unit words with their factors.
const SPEED_UNITS: [(&[u8], f64); 8] = [
    (b"k", 1024.0),
    (b"kb", 1000.0),
    (b"ki", 1024.0),
    (b"kib", 1024.0),
    (b"m", 1_048_576.0),
    (b"mb", 1_000_000.0),
    (b"mi", 1_048_576.0),
    (b"mib", 1_048_576.0),
];

/// Groups of number and unit, summed; in seconds. An empty text is 0, blanks only are an error.
pub(crate) fn duration(text: &[u8]) -> Result<u64, BadDuration> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut rest = text.trim_ascii_end();
    let mut total = 0.0;
    loop {
        let Some((number, unit, after)) = number_and_letters(rest) else {
            return Err(BadDuration(rest.to_vec()));
        };
        rest = after;
        let factor = if unit.is_empty() {
            Some(1.0)
        } else {
            DURATION_UNITS.iter().find(|(word, _)| is_prefix(unit, word)).map(|(_, seconds)| *seconds)
        };
        match factor {
            Some(factor) => total += number * factor,
            None => return Err(BadDuration(rest.to_vec())),
        }
        if rest.is_empty() {
            return Ok(to_integer(total));
        }
    }
}

/// A number and a unit; what follows the letters does not count. In bytes per second.
pub(crate) fn speed(text: &[u8]) -> Option<u64> {
    let (number, unit, _) = number_and_letters(text)?;
    if unit.is_empty() {
        return Some(to_integer(number));
    }
    let (_, factor) = SPEED_UNITS.iter().find(|(word, _)| word.eq_ignore_ascii_case(unit))?;
    Some(to_integer(number * factor))
}

/// Whether the text is a number in the reference's sense: sign, digits, `.digits`, exponent; digits
/// come first.
pub(crate) fn is_number(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let (whole, rest) = leading_digits(unsigned);
    if whole.is_empty() {
        return false;
    }
    let rest = match rest.strip_prefix(b".") {
        Some(fraction) => leading_digits(fraction).1,
        None => rest,
    };
    let Some((b'e' | b'E', exponent)) = rest.split_first() else {
        return rest.is_empty();
    };
    let exponent = exponent.strip_prefix(b"-").or_else(|| exponent.strip_prefix(b"+")).unwrap_or(exponent);
    let (digits, rest) = leading_digits(exponent);
    !digits.is_empty() && rest.is_empty()
}

/// The leading digits modulo 2^64, and whether a minus sign comes before them. For texts that
/// [`is_number`].
pub(crate) fn integer(text: &[u8]) -> (u64, bool) {
    let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let value = leading_digits(unsigned)
        .0
        .iter()
        .fold(0_u64, |value, digit| value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    (value, text.starts_with(b"-"))
}

/// As C's `atoi`: sign and leading digits, 0 without; too large numbers are clamped to the range.
pub(crate) fn leading_number(text: &[u8]) -> i64 {
    let text = skip_blanks(text);
    let (negative, unsigned) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let value = leading_digits(unsigned)
        .0
        .iter()
        .fold(0_i64, |value, digit| value.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    if negative { -value } else { value }
}

fn leading_digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

/// Splits off a number (digits with at most one dot, a digit first), a run of letters, and the
/// rest. Blanks may come before the number and before the letters.
fn number_and_letters(text: &[u8]) -> Option<(f64, &[u8], &[u8])> {
    let text = skip_blanks(text);
    let length = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(text.len());
    let (number, rest) = text.split_at(length);
    if !is_number(number) {
        return None;
    }
    let number = core::str::from_utf8(number).ok()?.parse().ok()?;
    let rest = skip_blanks(rest);
    let (unit, rest) = rest.split_at(rest.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(rest.len()));
    Some((number, unit, rest))
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let length = text.iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r')).unwrap_or(text.len());
    text.get(length..).unwrap_or_default()
}

fn is_prefix(given: &[u8], word: &[u8]) -> bool {
    word.get(..given.len()).is_some_and(|head| head.eq_ignore_ascii_case(given))
}

/// Towards zero, at most what a signed 64-bit number holds: the stock daemon's is one.
fn to_integer(value: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "never negative; the cast rounds towards zero and saturates, as wanted"
    )]
    let value = value as u64;
    value.min(i64::MAX.unsigned_abs())
}

#[cfg(test)]
mod tests;
