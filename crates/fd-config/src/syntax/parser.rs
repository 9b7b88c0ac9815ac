//! Tokens to resources: the grammar of the file, in two passes (reference 06 §1.1, §1.7, §1.8).
//!
//! Values are read in `values`; what must hold for the whole is checked in `checks`.

use crate::syntax::directives::{Kind, Type};
use crate::syntax::document::{Document, RawResource, Value};
use crate::syntax::error::SyntaxError;
use crate::syntax::explain;
use crate::syntax::lexer::{Contents, Lexer};
use crate::syntax::reader::{Pass, Passwords, Reader};
use crate::syntax::source::Source;
use crate::syntax::token::Token;
use crate::texts;

/// Reads a file with all its includes, and parses it twice.
pub(crate) fn parse(file: &[u8], source: &mut dyn Source, passwords: Passwords) -> Result<Document, SyntaxError> {
    let mut resources = Vec::new();
    let mut contents = Contents::new();
    for pass in [Pass::First, Pass::Second] {
        let lexer = Lexer::open(file, &mut *source, &mut contents)?;
        let reader = Reader { lexer, pass, passwords, resources: &mut resources };
        Parser { reader, level: 0 }.run()?;
    }
    Ok(Document { file: file.to_vec(), resources })
}

/// One pass.
struct Parser<'s> {
    reader: Reader<'s>,
    /// Open braces. Not reset between resources: a brace too many shows in the next one.
    level: i64,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), SyntaxError> {
        loop {
            match self.reader.lexer.next()? {
                Token::EndOfFile => return Ok(()),
                Token::EndOfLine | Token::Utf8Mark => {}
                Token::Utf16Mark => return Err(self.reader.lexer.fail(&texts::UTF16_LITTLE_ENDIAN, [])),
                Token::Identifier => self.resource()?,
                _ => return Err(self.reader.lexer.fail_with_text(&texts::EXPECTED_A_RESOURCE)),
            }
        }
    }

    fn resource(&mut self) -> Result<(), SyntaxError> {
        let Some(kind) = Kind::of(self.reader.lexer.text()) else {
            let mut error = self.reader.lexer.fail_with_text(&texts::UNKNOWN_RESOURCE);
            let names = Kind::ALL.iter().map(|kind| kind.name()).chain(["Client"]);
            error.hint = explain::did_you_mean(self.reader.lexer.text(), names);
            return Err(error);
        };
        let mut resource = RawResource::new(kind);
        loop {
            match self.reader.lexer.next()? {
                Token::OpenBrace => self.level = self.level.saturating_add(1),
                Token::CloseBrace => {
                    self.level = self.level.saturating_sub(1);
                    return self.finish(resource);
                }
                Token::EndOfLine => {}
                Token::Identifier => self.directive(&mut resource)?,
                Token::EndOfFile => return Err(self.reader.lexer.fail(&texts::UNCLOSED_RESOURCE, [])),
                token => {
                    let (number, name) = token.number_and_name();
                    let mut error =
                        self.reader.lexer.fail(&texts::UNEXPECTED_TOKEN, [number.to_string().into(), name.into()]);
                    let line = error.place().map(|place| place.source_line.clone()).unwrap_or_default();
                    let hint = explain::missing_equals(&line, resource.kind);
                    error.hint = Some(hint.unwrap_or_else(|| texts::STRAY_WORD.to_owned()));
                    return Err(error);
                }
            }
        }
    }

    fn directive(&mut self, resource: &mut RawResource) -> Result<(), SyntaxError> {
        if self.level != 1 {
            return Err(self.reader.lexer.fail_with_text(&texts::NOT_IN_RESOURCE));
        }
        let directives = resource.kind.directives();
        let text = self.reader.lexer.text();
        let known = directives.iter().enumerate().find(|(_, known)| known.name.as_bytes().eq_ignore_ascii_case(text));
        let Some((index, directive)) = known else {
            let mut error = self.reader.lexer.fail_with_text(&texts::UNKNOWN_DIRECTIVE);
            let line = error.place().map(|place| place.source_line.clone()).unwrap_or_default();
            error.hint = explain::missing_equals(&line, resource.kind).or_else(|| {
                explain::unknown_directive(self.reader.lexer.text(), resource.kind, self.reader.lexer.ended_by(b'{'))
            });
            return Err(error);
        };
        if self.reader.lexer.next_on_any_line()? != Token::Equals {
            let mut error = self.reader.lexer.fail_with_text(&texts::EXPECTED_EQUALS);
            error.hint = Some(texts::write_equals(directive.name));
            error.secret |= directive.kind == Type::Password;
            return Err(error);
        }
        self.reader.value(resource, index, directive)
    }

    /// At the closing brace.
    fn finish(&mut self, resource: RawResource) -> Result<(), SyntaxError> {
        if matches!(resource.value("Name"), Value::Absent) {
            return Err(self.reader.lexer.fail(&texts::NAME_MISSING, []));
        }
        let same = |other: &RawResource| other.kind == resource.kind && other.name() == resource.name();
        if self.reader.pass == Pass::Second {
            if let Some(first) = self.reader.resources.iter_mut().find(|other| same(other)) {
                first.complete(resource);
            }
            return Ok(());
        }
        let kind = resource.kind.name();
        let missing = resource.entries().find(|(directive, value)| directive.required && **value == Value::Absent);
        if let Some((directive, _)) = missing {
            let mut error = self.reader.lexer.fail(&texts::DIRECTIVE_MISSING, [directive.name.into(), kind.into()]);
            error.hint = Some(texts::line_is_missing(directive.name, kind));
            return Err(error);
        }
        if self.reader.resources.iter().any(same) {
            return Err(self.reader.lexer.fail(&texts::SECOND_RESOURCE, [kind.into(), resource.name().to_vec()]));
        }
        self.reader.resources.push(resource);
        Ok(())
    }
}
