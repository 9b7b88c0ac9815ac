//! Between the keys of objects and the names of files: `/@s3/BUCKET/KEY`.
//!
//! Each key has one name, and each name one key, whatever is in the key. What can't stand in a path
//! is written with `%`:
//! - `%XX` is the byte XX: control characters, `%` itself, and `.` and `..` as whole parts;
//! - `%` as a whole part is an empty one, as in `a//b` and `a/`;
//! - `%` at the end of a part that is a directory: the bucket also has an object of that name;
//! - `%+` at the end of a part: it is longer than a file's name may be, and goes on in the next.

/// What names begin with.
const ROOT: &[u8] = b"/@s3/";
/// Most bytes of a part, the marks not included: what file systems take, less the marks.
const LONGEST_PART: usize = 250;
/// Before a character a part is cut if it has less room left than this.
const ROOM_FOR_A_CHARACTER: usize = 12;
/// Bytes of an escaped one.
const ESCAPE: usize = 3;
/// At the end of a part: it goes on in the next one.
const GOES_ON: &[u8] = b"%+";
/// An empty part; or, at the end of a directory, that there is an object of its name.
const MARK: u8 = b'%';

/// The name of a key, for keys that come in their order.
#[derive(Debug, Default)]
pub(crate) struct Namer {
    /// Keys of objects that the present key begins with, shortest first.
    above: Vec<Vec<u8>>,
}

impl Namer {
    /// The name of the next key of a bucket, and whether a part of it is marked because of another
    /// object. Keys must come in the order of their bytes.
    pub(crate) fn name(&mut self, bucket: &str, key: &[u8]) -> (Vec<u8>, bool) {
        self.above.retain(|above| key.starts_with(above));
        let mut name = [ROOT, bucket.as_bytes()].concat();
        let mut is_marked = false;
        let mut parts = key.split(|byte| *byte == b'/').peekable();
        let mut end = 0;
        while let Some(part) = parts.next() {
            end += part.len();
            let prefix = key.get(..end).unwrap_or_default();
            let shares = parts.peek().is_some() && self.above.iter().any(|above| above == prefix);
            push_part(&mut name, part, shares);
            is_marked |= shares;
            end += 1;
        }
        self.above.push(key.to_vec());
        (name, is_marked)
    }
}

/// Appends a part, cut into pieces. Each piece is escaped for itself: what is left behind a cut may
/// be `..`.
fn push_part(name: &mut Vec<u8>, part: &[u8], shares: bool) {
    name.push(b'/');
    let mut rest = part;
    loop {
        let (piece, after) = rest.split_at(piece_len(rest));
        push_escaped(name, piece);
        if after.is_empty() {
            break;
        }
        name.extend_from_slice(GOES_ON);
        name.push(b'/');
        rest = after;
    }
    if part.is_empty() {
        name.push(MARK);
    }
    if shares {
        name.push(MARK);
    }
}

/// How many bytes of a part fit a file's name. A character of several bytes stays whole; bytes that
/// are none are cut anywhere.
fn piece_len(part: &[u8]) -> usize {
    let mut length = 0;
    for (at, byte) in part.iter().enumerate() {
        let is_start = byte & 0xC0 != 0x80;
        if (is_start && length + ROOM_FOR_A_CHARACTER > LONGEST_PART) || length + ESCAPE > LONGEST_PART {
            return at;
        }
        length += if is_escaped(*byte) { ESCAPE } else { 1 };
    }
    part.len()
}

fn push_escaped(name: &mut Vec<u8>, piece: &[u8]) {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    let digit = |number: u8| DIGITS.get(usize::from(number)).copied().unwrap_or_default();
    let is_dots = piece == b"." || piece == b"..";
    for byte in piece {
        if is_dots || is_escaped(*byte) {
            name.extend_from_slice(&[MARK, digit(byte >> 4), digit(byte & 15)]);
        } else {
            name.push(*byte);
        }
    }
}

const fn is_escaped(byte: u8) -> bool {
    byte.is_ascii_control() || byte == MARK
}

/// The bucket and the key of a name; `None` if it is the name of none.
pub(crate) fn key_of(name: &[u8]) -> Option<(String, Vec<u8>)> {
    let rest = name.strip_prefix(ROOT)?;
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    let bucket = std::str::from_utf8(rest.get(..slash)?).ok()?;
    let mut key: Vec<u8> = Vec::new();
    let mut parts = rest.get(slash + 1..)?.split(|byte| *byte == b'/').peekable();
    // Whether the part before goes on in this one.
    let mut goes_on = false;
    let mut is_first = true;
    while let Some(part) = parts.next() {
        if !is_first && !goes_on {
            key.push(b'/');
        }
        is_first = false;
        let is_last = parts.peek().is_none();
        if let Some(start) = part.strip_suffix(GOES_ON)
            && !is_last
        {
            unescape(start, &mut key)?;
            goes_on = true;
            continue;
        }
        let marked = if is_last { None } else { part.strip_suffix(&[MARK]).filter(|part| !part.is_empty()) };
        let part = marked.unwrap_or(part);
        match part {
            [MARK] if !goes_on => {}
            [] => return None,
            part => unescape(part, &mut key)?,
        }
        goes_on = false;
    }
    Some((bucket.to_owned(), key))
}

fn unescape(part: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let mut rest = part;
    while let Some((byte, after)) = rest.split_first() {
        if *byte == MARK {
            let (digits, after) = after.split_at_checked(2)?;
            let number = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
            key.push(u8::from_str_radix(number, 16).ok()?);
            rest = after;
        } else {
            key.push(*byte);
            rest = after;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
