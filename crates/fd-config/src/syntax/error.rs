//! The errors of a configuration file: values with their place.
//!
//! Each error has two texts: the stock daemon's message, and an explanation with the line and
//! advice. Both end up in the journal, so a password is in neither. The words themselves are in
//! `texts.rs`.

use core::fmt;

use crate::stock_message::StockMessage;
use crate::syntax::similar::is_nearly;
use crate::texts::{self, Form, PROGRAM, Text};

/// Longest text of an error, as the stock daemon cuts it (reference 06 §1.9).
const MAX_TEXT: usize = 499;

/// Where in which file an error was noticed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// As written in the include or on the command line; `|program args` for a program.
    pub file: Vec<u8>,
    /// The first line is 1.
    pub line: u32,
    /// Bytes of the line that had been read.
    pub column: usize,
    /// The complete line with its LF; empty at the end of the file.
    pub source_line: Vec<u8>,
    /// The line on which the word began (0: before the first).
    pub begin_line: u32,
    /// The byte at which the word began, from 0, if it is on `source_line`.
    pub begin_column: usize,
}

impl Place {
    /// The file as texts call it: what a program gets as arguments may be a secret.
    fn open_file(&self) -> Vec<u8> {
        if self.file.starts_with(b"|") { without_secret(&self.file) } else { self.file.clone() }
    }
}

/// A line of the file that can't be understood.
#[derive(Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub(crate) text: &'static Text,
    pub(crate) values: Vec<Vec<u8>>,
    pub(crate) place: Option<Box<Place>>,
    /// Advice for this case; it comes before the text's own.
    pub(crate) hint: Option<String>,
    /// The line holds a secret, which no text must repeat.
    pub(crate) secret: bool,
}

impl SyntaxError {
    /// Where it was noticed; `None` when not even the main file could be opened.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_deref()
    }

    /// The stock daemon's text without place, cut as it cuts it.
    pub fn text(&self) -> Vec<u8> {
        let mut text = fill(self.text.template, &self.open_values());
        text.truncate(MAX_TEXT);
        text
    }

    /// What the daemon prints (reference 06 §1.9).
    pub fn message(&self) -> StockMessage {
        let mut body = self.text();
        match (self.text.form, &self.place) {
            (Form::Abort, _) => return StockMessage::abort(PROGRAM, self.text.location, &body),
            (Form::Termination, _) => {}
            (Form::ConfigError, place) => {
                body.splice(0..0, *b"Config error: ");
                body.push(b'\n');
                if let Some(place) = place {
                    let position = format!("            : line {}, col {} of file ", place.line, place.column);
                    body.extend_from_slice(position.as_bytes());
                    body.extend_from_slice(&place.open_file());
                    body.push(b'\n');
                    body.extend_from_slice(&self.open_line(&place.source_line));
                    body.push(b'\n');
                    if place.begin_line != place.line {
                        let begin = texts::begins_at(place.begin_line);
                        body.extend_from_slice(begin.as_bytes());
                    }
                }
            }
        }
        StockMessage::termination(PROGRAM, self.text.location, &body)
    }

    /// The exit status of the stock daemon: 1, or 11 where it aborts.
    pub fn exit_status(&self) -> u8 {
        if self.text.form == Form::Abort { 11 } else { 1 }
    }

    /// The values without secrets.
    fn open_values(&self) -> Vec<Vec<u8>> {
        let mut values = self.values.clone();
        for index in self.text.secrets.iter().filter(|_| self.secret) {
            if let Some(value) = values.get_mut(*index) {
                *value = texts::HIDDEN.into();
            }
        }
        let line = self.place.as_ref().map_or(&[][..], |place| &place.source_line);
        let behind = secret_from(line).and_then(|from| line.get(from..)).unwrap_or_default();
        let behind = quoted_part(behind).unwrap_or(behind);
        for value in &mut values {
            let is_word = value.iter().any(u8::is_ascii_alphanumeric);
            if is_word && behind.windows(value.len()).any(|part| part == value) {
                *value = texts::HIDDEN.into();
            } else {
                *value = without_secret(value);
            }
        }
        values
    }

    /// The line without a secret.
    fn open_line(&self, line: &[u8]) -> Vec<u8> {
        // At the end of the file it is empty.
        let is_secret = self.secret && !line.is_empty();
        if is_secret { [texts::HIDDEN.as_bytes(), b"\n"].concat() } else { without_secret(line) }
    }
}

impl fmt::Debug for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}:{}:{}: ", String::from_utf8_lossy(&place.open_file()), place.line, place.column)?;
        }
        let text = fill(self.text.template, &self.open_values());
        f.write_str(String::from_utf8_lossy(&text).trim_end())
    }
}

impl core::error::Error for SyntaxError {}

/// A text without the secret in it, if there is one; with its LF.
fn without_secret(text: &[u8]) -> Vec<u8> {
    match secret_from(text).and_then(|from| text.split_at_checked(from)) {
        Some((open, secret)) if !secret.trim_ascii().is_empty() => {
            let end = if secret.ends_with(b"\n") { "\n" } else { "" };
            [open, texts::HIDDEN.as_bytes(), end.as_bytes()].concat()
        }
        _ => text.to_vec(),
    }
}

/// Where the secret in a text begins: behind the name of the directive that has one, however it is
/// written (neither case nor blanks count), or misspelt. What is wrong with the line, and whether
/// it belongs to another directive, does not matter.
pub(crate) fn secret_from(text: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"passw";
    let letters: Vec<(usize, u8)> = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| !byte.is_ascii_whitespace())
        .map(|(at, byte)| (at, byte.to_ascii_lowercase()))
        .collect();
    let is_name = |part: &&[(usize, u8)]| part.iter().map(|(_, byte)| byte).eq(NAME);
    let named = letters.windows(NAME.len()).find(is_name).and_then(|name| name.last()).map(|(last, _)| {
        let rest = text.get(last + 1..).unwrap_or_default();
        last + 1 + rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count()
    });
    named.into_iter().chain(misspelt(text)).min()
}

/// Where a word ends that is nearly the name of the directive with a secret.
fn misspelt(text: &[u8]) -> Option<usize> {
    let mut behind = 0;
    text.split(|byte| !byte.is_ascii_alphabetic()).find_map(|word| {
        let end = behind + word.len();
        behind = end + 1;
        is_nearly(word, "Password").then_some(end)
    })
}

/// The part of what stands behind the directive's name that can be its secret: what is in quotes,
/// if what comes then can't belong to it.
fn quoted_part(text: &[u8]) -> Option<&[u8]> {
    let begin = text.iter().position(|byte| !b" \t=".contains(byte))?;
    let value = text.get(begin..)?.strip_prefix(b"\"")?;
    let (secret, rest) = value.split_at_checked(value.iter().position(|byte| *byte == b'"')?)?;
    let rest = rest.split(|byte| *byte == b'#').next()?.get(1..)?;
    let is_end = matches!(rest.trim_ascii_start().first(), None | Some(b';' | b'}'));
    (is_end && !rest.contains(&b'"') && !secret.contains(&b'\\')).then_some(secret)
}

/// Puts the values in the places of `%s`.
pub(crate) fn fill(template: &str, values: &[Vec<u8>]) -> Vec<u8> {
    let mut values = values.iter();
    let mut filled = Vec::with_capacity(template.len());
    for (index, part) in template.split("%s").enumerate() {
        if index > 0 {
            filled.extend_from_slice(values.next().map_or(b"", Vec::as_slice));
        }
        filled.extend_from_slice(part.as_bytes());
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u32, begin_line: u32) -> Place {
        let source_line = b"  Foo = bar\n".to_vec();
        Place { file: b"FILE".to_vec(), line, column: 6, source_line, begin_line, begin_column: 2 }
    }

    #[test]
    fn message_has_the_stock_layout() {
        // reference 06 §1.9
        let mut error = SyntaxError {
            text: &texts::UNKNOWN_DIRECTIVE,
            values: vec![b"Foo".to_vec()],
            place: Some(Box::new(place(11, 11))),
            hint: None,
            secret: false,
        };
        let expected = "bacula-fd: ERROR TERMINATION at parse_conf.c:1698\n\
            Config error: Keyword \"Foo\" not permitted in this resource.\n\
            Perhaps you left the trailing brace off of the previous resource.\n\
            \x20           : line 11, col 6 of file FILE\n\
            \x20 Foo = bar\n\n";
        assert_eq!(String::from_utf8_lossy(error.message().text()), expected);
        error.place = Some(Box::new(place(11, 9)));
        let expected = format!("{expected}Problem probably begins at line 9.\n");
        assert_eq!(String::from_utf8_lossy(error.message().text()), expected);
    }

    #[test]
    fn a_long_text_is_cut() {
        let error = SyntaxError {
            text: &texts::UNKNOWN_DIRECTIVE,
            values: vec![vec![b'x'; 4000]],
            place: None,
            hint: None,
            secret: false,
        };
        assert_eq!(error.text().len(), 499);
    }
    #[test]
    fn a_wrong_word_behind_a_password_in_quotes_is_told() {
        let told = |line: &str, word: &str| {
            let source_line = line.as_bytes().to_vec();
            let place = Some(Box::new(Place { source_line, ..place(1, 1) }));
            let values = vec![word.as_bytes().to_vec()];
            let error = SyntaxError { text: &texts::UNKNOWN_DIRECTIVE, values, place, hint: None, secret: false };
            let message = String::from_utf8_lossy(error.message().text()).into_owned();
            // The line itself never is.
            assert!(!message.contains("s3c") && message.contains("(hidden)"), "{message}");
            message.contains(&format!("\"{word}\""))
        };
        assert!(told("Director { Password = \"s3c\"; Bogus = 1 }\n", "Bogus"));
        assert!(told("Pasword = \"s3c\" # x", "Pasword") && told("Passowrd=s3c;", "Passowrd"));
        for line in [
            "Password = s3c;Bogus",
            "Password = \"s3c Bogus",
            "Password = \"s3c\"Bogus",
            "Password = \"s3c\" Bogus",
            "Password = \"s3c\\\"; Bogus\"",
            "Password = \"s3c\"; Bogus\"",
            "Password = \"s3c\";Bogus\"; # \"x",
            "Password = \"s3cBogus\"; Bogus",
            "Pasword = s3c;Bogus",
        ] {
            assert!(!told(line, "Bogus"), "{line}");
        }
    }
}
