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
/// At the end of a part: it goes on in the next one.
const GOES_ON: &[u8] = b"%+";
/// An empty part; or, at the end of a directory, that there is an object of its name.
const MARK: u8 = b'%';

/// The name of a key, for keys that come in their order.
#[derive(Debug, Default)]
pub(super) struct Namer {
    /// Keys of objects that the present key begins with, shortest first.
    above: Vec<Vec<u8>>,
}

impl Namer {
    /// The name of the next key of a bucket, and whether a part of it is marked because of another
    /// object. Keys must come in the order of their bytes.
    pub(super) fn name(&mut self, bucket: &str, key: &[u8]) -> (Vec<u8>, bool) {
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

fn push_part(name: &mut Vec<u8>, part: &[u8], shares: bool) {
    name.push(b'/');
    let mut length = 0;
    let dots = part == b"." || part == b"..";
    for (at, byte) in part.iter().enumerate() {
        let escapes = byte.is_ascii_control() || *byte == MARK || dots;
        // A character of several bytes stays whole.
        let goes_on_after = length + 12 > LONGEST_PART && is_start(part, at);
        if goes_on_after {
            name.extend_from_slice(GOES_ON);
            name.push(b'/');
            length = 0;
        }
        if escapes {
            const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
            let digit = |number: u8| DIGITS.get(usize::from(number)).copied().unwrap_or_default();
            name.extend_from_slice(&[MARK, digit(byte >> 4), digit(byte & 15)]);
            length += 3;
        } else {
            name.push(*byte);
            length += 1;
        }
    }
    if part.is_empty() {
        name.push(MARK);
    }
    if shares {
        name.push(MARK);
    }
}

/// Whether a character begins here.
fn is_start(part: &[u8], at: usize) -> bool {
    part.get(at).is_some_and(|byte| byte & 0xC0 != 0x80)
}

/// The bucket and the key of a name; `None` if it is the name of none.
pub(super) fn key_of(name: &[u8]) -> Option<(String, Vec<u8>)> {
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
