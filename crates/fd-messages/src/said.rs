//! What a peer has said and how files are named, fit for a message.

use std::borrow::Cow;
use std::fmt::{Display, Formatter, Result};

/// Most characters that are kept.
const MOST: usize = 500;

/// A text that a peer has sent, or that may hold what it has sent: one line without control
/// characters, and not longer than a message of ours should be. Nothing else of a peer belongs into
/// a message, a log or an error.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Said(String);

impl Said {
    /// What is left of this text.
    pub fn new(text: &(impl Display + ?Sized)) -> Self {
        let text = text.to_string();
        let plain = text.trim().chars().map(|character| if is_printable(character) { character } else { ' ' });
        Self(plain.take(MOST).collect())
    }

    /// What is left of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        // A character has at most four bytes.
        let first = bytes.get(..bytes.len().min(4 * MOST)).unwrap_or_default();
        Self::new(&String::from_utf8_lossy(first))
    }

    /// It as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Said {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.0)
    }
}

/// A name of a file as it stands in a message: its user must not begin a line of the job's log, nor
/// order a terminal about. What is not printable, but for tabs, becomes `\n`, `\x1b` and the like;
/// bytes of other encodings stay.
pub fn shown(name: &[u8]) -> Cow<'_, [u8]> {
    if name.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return Cow::Borrowed(name);
    }
    let mut text = Vec::with_capacity(name.len());
    let escape = |text: &mut Vec<u8>, bytes: &[u8]| text.extend(bytes.escape_ascii());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            if is_printable(character) || character == '\t' {
                text.extend_from_slice(bytes);
            } else {
                escape(&mut text, bytes);
            }
        }
        for byte in chunk.invalid() {
            // These are control characters to a terminal of 8 bits.
            if matches!(byte, 0x80..=0x9F) { escape(&mut text, &[*byte]) } else { text.push(*byte) }
        }
    }
    Cow::Owned(text)
}

/// Bytes of a line's parts that are kept: a line of a job's log is cut at fewer anyway, and names
/// on a volume may be a thousand times as long.
const LONGEST_LINE: usize = 5000;

/// A line of a job's log of these parts, the last of which may have the line's end. All in them is
/// [`shown`].
pub fn one_line(parts: &[&[u8]]) -> Vec<u8> {
    let mut text = parts.concat();
    if text.len() > LONGEST_LINE {
        let has_end = text.ends_with(b"\n");
        text.truncate(LONGEST_LINE);
        text.extend(has_end.then_some(b'\n'));
    }
    match text.strip_suffix(b"\n") {
        Some(line) => match shown(line) {
            Cow::Borrowed(_) => text,
            Cow::Owned(mut line) => {
                line.push(b'\n');
                line
            }
        },
        None => shown(&text).into_owned(),
    }
}

/// Whether a terminal or a log shows the character, and only that: line separators and marks that
/// turn the direction of writing are none.
fn is_printable(character: char) -> bool {
    let turns = matches!(character, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    !character.is_control() && !turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_in_one_line_and_other_encodings_stay() {
        for (name, expected) in [
            (b"/a b/\xc3\xa9\xe9".as_slice(), b"/a b/\xc3\xa9\xe9".as_slice()),
            (b"x\n25-Nov JobId 1: \x1b[2J\x7f\t", b"x\\n25-Nov JobId 1: \\x1b[2J\\x7f\t"),
            (b"\xc2\x9b2J \x9b2J \xff", b"\\xc2\\x9b2J \\x9b2J \xff"),
            ("a\u{202E}b\u{2028}".as_bytes(), b"a\\xe2\\x80\\xaeb\\xe2\\x80\\xa8"),
        ] {
            assert_eq!(shown(name).escape_ascii().to_string(), expected.escape_ascii().to_string());
        }
        assert_eq!(one_line(&[b"Cannot stat ", b"a\nb", b": x\n"]), b"Cannot stat a\\nb: x\n");
        assert_eq!(one_line(&[b"Cannot stat ", b"a", b"\n"]), b"Cannot stat a\n");
        let long = one_line(&["\n".repeat(1_000_000).as_bytes(), b"\n"]);
        assert!(long.len() <= 2 * LONGEST_LINE + 1 && long.ends_with(b"\\n\n"));
    }

    #[test]
    fn a_peer_s_text_is_one_short_line_of_printable_characters() {
        assert_eq!(Said::new("Zugriff für 日本 verweigert\n").as_str(), "Zugriff für 日本 verweigert");
        assert_eq!(
            Said::new("a\n25-Nov JobId 1: b\r\u{1b}[2J\u{9b}c\u{202E}d").as_str(),
            "a 25-Nov JobId 1: b  [2J c d"
        );
        assert_eq!(Said::of_bytes(b"\xff\0x").as_str(), "\u{fffd} x");
        assert_eq!(Said::of_bytes("é".repeat(5000).as_bytes()).as_str().chars().count(), MOST);
    }
}
