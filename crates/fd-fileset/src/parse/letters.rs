//! The letters of an `O` line (reference 03 §2.1).

use fd_records::{Compression, DigestKind};

use crate::parse::flags::Flags;
use crate::parse::options::Options;

/// Longest text of the letters `V`, `C` and `J`.
const LONGEST_TEXT: usize = 49;

/// Reads the letters into `options`, which keeps what earlier lines of the same block set. Returns
/// the unknown letters, in order.
pub(crate) fn read(letters: &[u8], options: &mut Options) -> Vec<u8> {
    let mut unknown = Vec::new();
    let mut rest = letters;
    while let Some((&letter, after)) = rest.split_first() {
        rest = after;
        match letter {
            b'C' => options.accurate = text(letter, &mut rest),
            b'J' => options.base_job = text(letter, &mut rest),
            b'V' => options.verify = text(letter, &mut rest),
            b'P' => {
                options.flags |= Flags::STRIP_PATH;
                options.strip_path = atoi(until_colon(&mut rest));
            }
            b'd' => dedup(&mut rest, options),
            b'Z' => compression(&mut rest, options),
            other => match Flags::of_letter(other).or_else(|| digest(other, &mut rest)) {
                Some(flag) => options.flags |= flag,
                None => unknown.push(other),
            },
        }
    }
    unknown
}

/// The text up to `:` (or the end of the line), with its letter in front.
fn text(letter: u8, rest: &mut &[u8]) -> Vec<u8> {
    let mut text = vec![letter];
    text.extend_from_slice(until_colon(rest));
    text.truncate(LONGEST_TEXT);
    text
}

fn until_colon<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let mut parts = rest.splitn(2, |byte| *byte == b':');
    let text = parts.next().unwrap_or_default();
    *rest = parts.next().unwrap_or_default();
    text
}

/// The number at the front of `text`, as C's `atoi` reads it; below 0 and above the range counts as
/// the limit.
fn atoi(text: &[u8]) -> u32 {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_u32, |number, digit| number.saturating_mul(10).saturating_add(u32::from(digit.wrapping_sub(b'0'))))
}

fn dedup(rest: &mut &[u8], options: &mut Options) {
    let Some((&level, after)) = rest.split_first() else { return };
    *rest = after;
    if level.is_ascii_digit() {
        options.flags |= Flags::DEDUP;
        options.dedup_level = level.wrapping_sub(b'0');
    }
}

/// The digest that `letter` asks for, with the digit behind it. `S` alone is SHA1 and takes nothing
/// of what follows.
fn digest(letter: u8, rest: &mut &[u8]) -> Option<Flags> {
    for kind in DigestKind::ALL {
        let Some((first, behind)) = kind.option().as_bytes().split_first() else { continue };
        if *first == letter
            && let Some(after) = rest.strip_prefix(behind)
        {
            *rest = after;
            return Some(Flags::of_digest(kind));
        }
    }
    (letter == b'S').then(|| Flags::of_digest(DigestKind::Sha1))
}

/// `Z` always takes one character; an unknown one leaves the block as it was.
fn compression(rest: &mut &[u8], options: &mut Options) {
    let Some((&which, after)) = rest.split_first() else { return };
    *rest = after;
    if let Some(compression) = Compression::from_letter(which) {
        options.compression = Some(compression);
        options.flags |= Flags::COMPRESS;
    }
}

#[cfg(test)]
mod tests;
