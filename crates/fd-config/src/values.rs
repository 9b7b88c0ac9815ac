//! The values of directives, each type with its own rules (reference 06 §2).
//!
//! Addresses, message destinations and `Connect` lines have files of their own.

mod addresses;
mod connect_lines;
mod destinations;
pub(crate) mod numbers;

use fd_records::{ContentCipher, DigestKind};

use crate::resources::{PasswordKey, StatisticsKind};
use crate::syntax::directives::{Directive, Kind, Type};
use crate::syntax::document::{RawResource, Secret, Value};
use crate::syntax::error::SyntaxError;
use crate::syntax::explain;
use crate::syntax::reader::{Pass, Passwords, Reader};
use crate::syntax::source::Source;
use crate::syntax::token::Token;
use crate::texts::{self, Text};
use fd_messages::split_arguments;

const STATISTICS: [(&str, StatisticsKind); 2] = [("CSV", StatisticsKind::Csv), ("Graphite", StatisticsKind::Graphite)];
const BOOLS: [(&str, bool); 4] = [("yes", true), ("true", true), ("no", false), ("false", false)];

fn ciphers() -> [(&'static str, ContentCipher); 4] {
    ContentCipher::ALL.map(|cipher| (cipher.name(), cipher))
}

/// The digests that have a word.
fn digests() -> Vec<(&'static str, DigestKind)> {
    DigestKind::ALL.into_iter().filter_map(|kind| Some((kind.directive()?, kind))).collect()
}

/// A directory with one of these characters is expanded by the shell.
const SHELL_CHARACTERS: &[u8] = b"~\\$[]*?`'<>\"";
/// Bytes of the shell's first line of output that count.
const MAX_EXPANSION: usize = 499;

impl Reader<'_> {
    /// Reads the value of a directive, after the `=`.
    pub(crate) fn value(
        &mut self,
        resource: &mut RawResource,
        index: usize,
        directive: &'static Directive,
    ) -> Result<(), SyntaxError> {
        let result = match directive.kind {
            Type::Name | Type::String | Type::Command | Type::Directory | Type::Password => {
                self.string(resource, index, directive)
            }
            Type::StringList if self.pass == Pass::Second => self.string_list(resource, index, directive),
            Type::StringList => self.lexer.skip_statement().map(|()| Value::List(Vec::new())).map(Some),
            Type::Reference(kind) => self.reference(resource, index, directive, kind),
            Type::Bool => self.keyword(&BOOLS, &texts::NOT_A_BOOL, Value::Flag),
            Type::Cipher => self.keyword(&ciphers(), &texts::NOT_A_CIPHER, Value::Cipher),
            Type::Digest => self.keyword(&digests(), &texts::NOT_A_DIGEST, Value::Digest),
            Type::Backend => self.keyword(&STATISTICS, &texts::NOT_A_STATISTICS_TYPE, Value::Statistics),
            Type::Integer => self.integer(),
            Type::Time => self.time(),
            Type::Speed => self.speed(),
            Type::Port => self.port(&mut resource.addresses),
            Type::Address => self.address(resource),
            Type::SourceAddress => self.source_address(resource),
            Type::Addresses => self.addresses(&mut resource.addresses),
            Type::Destination(kind) => self.destination(resource, kind),
            Type::Connect => self.connect(&mut resource.runs),
        };
        let value = result.map_err(|mut error| {
            error.secret |= directive.kind == Type::Password;
            error
        })?;
        if directive.kind == Type::Password {
            self.lexer.read_secret();
        }
        if let (Some(slot), Some(value)) = (resource.at(index), value) {
            *slot = value;
        }
        Ok(())
    }

    /// All types that are one word.
    fn string(
        &mut self,
        resource: &mut RawResource,
        index: usize,
        directive: &Directive,
    ) -> Result<Option<Value>, SyntaxError> {
        if directive.kind == Type::Name {
            self.lexer.name()?;
            if let Err(reason) = check_name(self.lexer.text()) {
                return Err(self.lexer.fail(&texts::BAD_RESOURCE_NAME, [reason]));
            }
        } else {
            self.lexer.word()?;
        }
        let mut text = self.lexer.text().to_vec();
        if directive.kind == Type::Directory && self.pass == Pass::First {
            text = expand(text, self.lexer.source());
        }
        let old = match resource.at(index) {
            Some(Value::Text(old)) => Some(old.clone()),
            Some(Value::Secret(old)) => Some(match self.passwords {
                Passwords::Keys => old.key.as_bytes().to_vec(),
                Passwords::Clear => old.clear.clone(),
            }),
            _ => None,
        };
        if let Some(old) = old {
            let failure: Option<&'static Text> = match directive.kind {
                Type::Name => Some(&texts::NAME_REDEFINED),
                Type::Directory => Some(&texts::DIRECTORY_REDEFINED),
                Type::Password if self.passwords == Passwords::Keys => Some(&texts::PASSWORD_REDEFINED),
                Type::Command => None,
                _ => Some(&texts::STRING_REDEFINED),
            };
            if let Some(failure) = failure {
                let (line_no, line) = self.lexer.line();
                return Err(self.lexer.fail(failure, [directive.name.into(), old, text, line_no, line]));
            }
        }
        self.lexer.skip_statement()?;
        Ok(Some(if directive.kind == Type::Password {
            Value::Secret(Secret { key: PasswordKey::of(&text), clear: text })
        } else {
            Value::Text(text)
        }))
    }

    fn string_list(
        &mut self,
        resource: &mut RawResource,
        index: usize,
        directive: &Directive,
    ) -> Result<Option<Value>, SyntaxError> {
        let mut items = match resource.at(index) {
            Some(Value::List(items)) => core::mem::take(items),
            _ => Vec::new(),
        };
        loop {
            self.lexer.word()?;
            items.push(self.lexer.text().to_vec());
            if !self.lexer.ended_by(b',') {
                break;
            }
            self.lexer.next()?;
        }
        let next = self.lexer.rest_of_line().iter().find(|byte| !matches!(byte, b' ' | b'\t'..=b'\r'));
        if !matches!(next, None | Some(b'#' | b';')) {
            let (line_no, line) = self.lexer.line();
            return Err(self.lexer.fail(&texts::BAD_LIST_END, [directive.name.into(), line_no, line]));
        }
        self.lexer.skip_statement()?;
        Ok(Some(Value::List(items)))
    }

    fn reference(
        &mut self,
        resource: &mut RawResource,
        index: usize,
        directive: &Directive,
        kind: Kind,
    ) -> Result<Option<Value>, SyntaxError> {
        self.lexer.name()?;
        let name = self.lexer.text().to_vec();
        if self.pass == Pass::Second {
            let (line_no, line) = self.lexer.line();
            if !self.resources.iter().any(|other| other.kind == kind && other.name() == name) {
                let mut error = self.lexer.fail(&texts::UNKNOWN_REFERENCE, [name.clone(), line_no, line]);
                let names = self.resources.iter().filter(|other| other.kind == kind).map(RawResource::name);
                error.hint = Some(explain::known_names(kind, &name, names));
                return Err(error);
            }
            if matches!(resource.at(index), Some(Value::Reference(_))) {
                return Err(self.lexer.fail(&texts::REFERENCE_REDEFINED, [directive.name.into(), line_no, line]));
            }
        }
        self.lexer.skip_statement()?;
        Ok(Some(Value::Reference(name)))
    }

    fn keyword<T: Copy>(
        &mut self,
        words: &[(&str, T)],
        failure: &'static Text,
        make: fn(T) -> Value,
    ) -> Result<Option<Value>, SyntaxError> {
        self.lexer.name()?;
        let text = self.lexer.text();
        let Some((_, value)) = words.iter().find(|(word, _)| word.as_bytes().eq_ignore_ascii_case(text)) else {
            let mut error = self.lexer.fail_with_text(failure);
            error.hint = explain::did_you_mean(text, words.iter().map(|(word, _)| *word));
            return Err(error);
        };
        let value = make(*value);
        self.lexer.skip_statement()?;
        Ok(Some(value))
    }

    fn integer(&mut self) -> Result<Option<Value>, SyntaxError> {
        self.lexer.next()?;
        let text = self.lexer.text();
        if !numbers::is_number(text) {
            return Err(self.lexer.fail_with_text(&texts::NOT_A_POSITIVE_INTEGER));
        }
        let (value, negative) = numbers::integer(text);
        if negative && value != 0 {
            return Err(self.lexer.fail_with_text(&texts::NEGATIVE_INTEGER));
        }
        self.lexer.skip_statement()?;
        #[expect(clippy::cast_possible_truncation, reason = "the stock daemon keeps the low 32 bits")]
        let low = value as u32;
        Ok(Some(Value::Integer(low)))
    }

    fn time(&mut self) -> Result<Option<Value>, SyntaxError> {
        let (text, last) = self.collect(&texts::EXPECTED_A_DURATION)?;
        let seconds = numbers::duration(&text).map_err(|bad| self.lexer.fail(&texts::NOT_A_DURATION, [bad.0]))?;
        self.end_collected(last)?;
        Ok(Some(Value::Long(seconds)))
    }

    fn speed(&mut self) -> Result<Option<Value>, SyntaxError> {
        let (text, last) = self.collect(&texts::EXPECTED_A_SPEED)?;
        let Some(speed) = numbers::speed(&text) else {
            return Err(self.lexer.fail_with_text(&texts::NOT_A_SPEED));
        };
        self.end_collected(last)?;
        Ok(Some(Value::Long(speed)))
    }

    /// Joins words and numbers as long as exactly one blank ended the last one; what follows is
    /// dropped, even a brace.
    fn collect(&mut self, failure: &'static Text) -> Result<(Vec<u8>, Token), SyntaxError> {
        let mut token = self.lexer.next_on_any_line()?;
        if !token.is_bare() {
            return Err(self.lexer.fail_with_text(failure));
        }
        let mut text = self.lexer.text().to_vec();
        while self.lexer.ended_by(b' ') {
            token = self.lexer.next()?;
            if token.is_bare() {
                text.extend_from_slice(self.lexer.text());
            }
        }
        Ok((text, token))
    }

    fn end_collected(&mut self, last: Token) -> Result<(), SyntaxError> {
        if last == Token::EndOfLine { Ok(()) } else { self.lexer.skip_statement() }
    }
}

/// Letters, digits and `: . - _` and blank, at least one.
fn check_name(name: &[u8]) -> Result<(), Vec<u8>> {
    let bad = name.iter().find(|byte| !(byte.is_ascii_alphanumeric() || b":.-_ ".contains(byte)));
    match bad {
        Some(byte) => Err(crate::syntax::error::fill(texts::ILLEGAL_CHARACTER, &[vec![*byte]])),
        None if name.is_empty() => Err(texts::NAME_EMPTY.into()),
        None => Ok(()),
    }
}

/// Lets the shell expand a directory (reference 06 §2.3). If it fails, the text stays as it is.
fn expand(text: Vec<u8>, source: &mut dyn Source) -> Vec<u8> {
    if text.starts_with(b"|") || !text.iter().any(|byte| SHELL_CHARACTERS.contains(byte)) {
        return text;
    }
    let mut command = source.shell().unwrap_or_else(|| b"/bin/sh".to_vec());
    command.extend_from_slice(b" -c \"echo ");
    command.extend_from_slice(&text);
    command.push(b'"');
    let argv = split_arguments(&command);
    if argv.is_empty() {
        return text;
    }
    let Some(output) = source.run_shell(&argv) else {
        return text;
    };
    let line = output.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.get(..line.len().min(MAX_EXPANSION)).unwrap_or_default().trim_ascii_end().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ascii_words() {
        assert_eq!(check_name(b"a-b_c.d:e f"), Ok(()));
        assert_eq!(check_name(b""), Err(b"Name must be at least one character long.\n".to_vec()));
        assert_eq!(check_name(b"a*b"), Err(b"Illegal character \"*\" in name.\n".to_vec()));
        assert_eq!(check_name("dé".as_bytes()), Err(b"Illegal character \"\xc3\" in name.\n".to_vec()));
    }
}
