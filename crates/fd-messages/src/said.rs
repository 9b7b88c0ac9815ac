//! What a peer has said, fit for a message.

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
