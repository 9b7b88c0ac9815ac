//! Explanations of errors: the place, the line, and advice.
//!
//! Only layout and similarity of words; the advice itself is in `texts.rs`.

use crate::syntax::directives::Kind;
use crate::syntax::error::{SyntaxError, secret_from};
use crate::syntax::similar::closest;
use crate::texts;

/// Bytes of the line shown before and after the caret.
const BEFORE: usize = 60;
const AFTER: usize = 60;
/// Characters of the message that an explanation begins with.
const LONGEST_HEADLINE: usize = 240;

impl SyntaxError {
    /// The explanation beside the stock text: file, line and column, the line with a caret, hints.
    /// Ends in LF; empty where there is neither a line nor a hint.
    pub fn explanation(&self) -> String {
        if self.place.is_none() && self.hint.is_none() && self.text.hint.is_none() {
            return String::new();
        }
        let mut lines = vec![headline(&self.to_string())];
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let caret = place.begin_column.min(place.column);
            let (shown, offset) = match secret_from(&place.source_line) {
                _ if self.secret => (texts::HIDDEN.to_owned(), 0),
                None => around(&place.source_line, caret),
                Some(from) => {
                    let open = place.source_line.get(..from).unwrap_or_default();
                    around(&[open, b" ", texts::HIDDEN.as_bytes()].concat(), caret.min(from))
                }
            };
            lines.push(format!("{margin} |"));
            lines.push(format!("{number} | {shown}"));
            lines.push(format!("{margin} | {}^", " ".repeat(offset)));
            if place.begin_line != place.line {
                lines.push(format!("{margin} = {}", texts::begins_on_line(place.begin_line)));
            }
        }
        for hint in self.hint.as_deref().into_iter().chain(self.text.hint) {
            lines.push(format!("  {} {hint}", texts::HINT));
        }
        lines.join("\n") + "\n"
    }
}

/// The message as one line of limited length.
fn headline(message: &str) -> String {
    let mut line: String =
        message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_HEADLINE).collect();
    if message.chars().count() > LONGEST_HEADLINE {
        line.push('…');
    }
    line
}

/// The line as text, cut to the part around the caret, and the column of the caret.
fn around(line: &[u8], caret: usize) -> (String, usize) {
    let line = line.trim_ascii_end();
    let caret = caret.min(line.len());
    let from = caret.saturating_sub(BEFORE);
    let to = line.len().min(caret.saturating_add(AFTER));
    let before = printable(line.get(from..caret).unwrap_or_default());
    let after = printable(line.get(caret..to).unwrap_or_default());
    let offset = before.chars().count();
    (before + &after, offset)
}

fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .filter(|c| !c.is_control())
        .collect()
}

/// The word that was probably meant.
pub(crate) fn did_you_mean<'a>(word: &[u8], known: impl Iterator<Item = &'a str>) -> Option<String> {
    closest(word, known).map(texts::did_you_mean)
}

/// A directive that this resource does not have: suggests one that it has, or the resource that has
/// it.
pub(crate) fn unknown_directive(word: &[u8], kind: Kind, opens_a_block: bool) -> Option<String> {
    if let Some(opened) = Kind::of(word).filter(|_| opens_a_block) {
        return Some(texts::resource_inside(opened.name(), kind.name()));
    }
    let elsewhere: Vec<&str> = Kind::ALL
        .into_iter()
        .filter(|other| other.directives().iter().any(|directive| directive.name.as_bytes().eq_ignore_ascii_case(word)))
        .map(Kind::name)
        .collect();
    if !elsewhere.is_empty() {
        return Some(texts::belongs_to(&elsewhere, kind.name()));
    }
    did_you_mean(word, kind.directives().iter().map(|directive| directive.name))
}

/// A line that begins with the name of a directive of this resource, and goes on without an `=`.
pub(crate) fn missing_equals(line: &[u8], kind: Kind) -> Option<String> {
    let named = kind.directives().iter().filter(|directive| {
        let rest = after_name(line, directive.name);
        // A value, behind a blank or in quotes.
        rest.is_some_and(|rest| {
            let value = rest.trim_ascii_start();
            !value.is_empty() && !value.starts_with(b"=") && (value.len() < rest.len() || value.starts_with(b"\""))
        })
    });
    named.max_by_key(|directive| directive.name.len()).map(|directive| texts::write_equals(directive.name))
}

/// What stands behind a directive's name, which may have blanks in it.
fn after_name<'l>(line: &'l [u8], name: &str) -> Option<&'l [u8]> {
    name.bytes().try_fold(line, |rest, letter| {
        let (first, rest) = rest.trim_ascii_start().split_first()?;
        first.eq_ignore_ascii_case(&letter).then_some(rest)
    })
}

/// The names that a reference could have.
pub(crate) fn known_names<'a>(kind: Kind, wanted: &[u8], names: impl Iterator<Item = &'a [u8]>) -> String {
    let names: Vec<String> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    match closest(wanted, names.iter().map(String::as_str)) {
        Some(name) => texts::did_you_mean(name),
        None => texts::known_resources(kind.name(), &names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_its_equals_is_recognized() {
        let hint = |line: &[u8]| missing_equals(line, Kind::FileDaemon);
        assert_eq!(hint(b" Working Directory /var/lib\n"), Some(texts::write_equals("WorkingDirectory")));
        assert_eq!(hint(b"name f\n"), Some(texts::write_equals("Name")));
        for line in [&b"WorkingDirectory = /w\n"[..], b"WorkingDirectory\n", b"Names f\n", b"\n", b"WorkingDir /w\n"] {
            assert_eq!(hint(line), None, "{}", line.escape_ascii());
        }
        let password = missing_equals(b"Password \"s3cret\"\n", Kind::Director);
        assert_eq!(password, Some(texts::write_equals("Password")));
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let mut line = vec![b'a'; 500];
        line[300] = b'X';
        let (shown, offset) = around(&line, 300);
        assert_eq!(shown.len(), 120);
        assert_eq!(shown.as_bytes()[offset], b'X');
        assert_eq!(around(b"\tx\n", 1), (" x".to_owned(), 1));
        assert_eq!(around(b"", 7), (String::new(), 0));
    }
}
