//! Bytes to tokens: lines, comments, quotes, includes, byte order marks (reference 06 §1.2 – §1.6).
//!
//! Without any notion of resources. Its positions are those that the stock daemon prints.

use std::rc::Rc;

use crate::syntax::error::{Place, SyntaxError, secret_from};
use crate::syntax::input::{Char, Input, State};
use crate::syntax::source::{MAX_FILE, Source};
use crate::syntax::token::Token;
use crate::texts::{self, Text};
use fd_messages::split_arguments;

/// Bytes of one token; with one more the stock daemon corrupts its memory.
const MAX_TOKEN: usize = 4999;
/// Includes within includes. The stock daemon ends at the limit of open files, with the same text.
const MAX_DEPTH: usize = 1000;
/// Includes of one pass, so that files that include each other twice come to an end.
const MAX_INCLUDES: usize = 20_000;
/// Bytes of all files of one pass.
const MAX_BYTES: usize = 256 << 20;
/// Longest name.
const MAX_NAME: usize = 127;
/// The directory of configurations, which is meant by an empty name of the main file.
const DIRECTORY: &[u8] = b"/etc/bacula/";
/// The replacement of an end of line inside the quoted name of an include.
const END_OF_LINE_BYTE: u8 = 0xfe;

/// Files and outputs of programs, each with its name, in the order in which they were opened.
pub(crate) type Contents = Vec<(Vec<u8>, Rc<Vec<u8>>)>;

/// Makes tokens of a file and its includes.
pub(crate) struct Lexer<'s> {
    source: &'s mut dyn Source,
    /// What the pass before has read, if there was one. This pass gets the same: a pipe has nothing
    /// more, a program may fail the second time, and its limits would be dropped without a word.
    kept: &'s mut Contents,
    input: Input,
    parents: Vec<Input>,
    includes: usize,
    bytes: usize,
    /// Letters begin a string, not an identifier (only in `Connect`).
    pub(crate) no_identifiers: bool,
    /// The line that has a secret, or a part of one, but not the name of its directive.
    secret_line: Option<u32>,
}

impl<'s> Lexer<'s> {
    /// Opens the main file, or runs the program after `|`.
    pub(crate) fn open(
        file_name: &[u8],
        source: &'s mut dyn Source,
        kept: &'s mut Contents,
    ) -> Result<Self, SyntaxError> {
        let input = Input::new(file_name.to_vec(), Rc::default());
        let (parents, no_identifiers, secret_line) = (Vec::new(), false, None);
        let mut lexer = Self { source, kept, input, parents, includes: 0, bytes: 0, no_identifiers, secret_line };
        let opened = if file_name.is_empty() { DIRECTORY } else { file_name };
        match lexer.contents(opened) {
            Ok(bytes) => {
                lexer.input.bytes = bytes;
                Ok(lexer)
            }
            Err(reason) => Err(lexer.fail(&texts::CANNOT_OPEN_FILE, [opened.to_vec(), reason.into_bytes()])),
        }
    }

    pub(crate) fn source(&mut self) -> &mut dyn Source {
        self.source
    }

    /// The text of the last token. An end of line leaves the text as it was.
    pub(crate) fn text(&self) -> &[u8] {
        &self.input.text
    }

    /// Clears the text, as some conversions in the stock daemon do with their input.
    pub(crate) fn clear_text(&mut self) {
        self.input.text.clear();
    }

    /// Whether the character that ended the last token is this one.
    pub(crate) fn ended_by(&self, byte: u8) -> bool {
        self.input.current == Char::Byte(byte)
    }

    /// The last token was a secret. If the name of its directive is on a line before, nothing else
    /// says so of this line.
    pub(crate) fn read_secret(&mut self) {
        self.secret_line = secret_from(&self.input.line).is_none().then_some(self.input.line_no);
    }

    /// What follows the last token on its line.
    pub(crate) fn rest_of_line(&self) -> &[u8] {
        self.input.line.get(self.input.col_no..).unwrap_or_default()
    }

    /// The current line and its number, as messages name them.
    pub(crate) fn line(&self) -> (Vec<u8>, Vec<u8>) {
        (self.input.line_no.to_string().into_bytes(), self.input.line.clone())
    }

    /// An error at this place.
    pub(crate) fn fail<const N: usize>(&self, text: &'static Text, values: [Vec<u8>; N]) -> SyntaxError {
        let input = &self.input;
        let place = (input.line_no > 0).then(|| {
            Box::new(Place {
                file: input.name.clone(),
                line: input.line_no,
                column: input.col_no,
                source_line: input.line.clone(),
                begin_line: input.begin_line,
                begin_column: if input.begin_line == input.line_no { input.begin_column } else { input.col_no },
            })
        });
        SyntaxError {
            text,
            values: values.into(),
            place,
            hint: None,
            secret: self.secret_line == Some(self.input.line_no),
        }
    }

    /// An error about the last token.
    pub(crate) fn fail_with_text(&self, text: &'static Text) -> SyntaxError {
        self.fail(text, [self.text().to_vec()])
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Result<Token, SyntaxError> {
        let mut escaped = false;
        loop {
            let c = self.read()?;
            let token = match self.input.state {
                State::Between => self.between(c)?,
                State::Comment => {
                    if c == Char::EndOfLine {
                        self.input.state = State::Between;
                        Some(Token::EndOfLine)
                    } else {
                        None
                    }
                }
                State::Number => self.number(c)?,
                State::Identifier => self.identifier(c)?,
                State::String => self.string(c)?,
                State::Quoted => self.quoted(c, &mut escaped)?,
                State::Include => {
                    self.include(c)?;
                    None
                }
                State::IncludeQuoted => self.include_quoted(c, &mut escaped)?,
            };
            if let Some(token) = token {
                return Ok(token);
            }
        }
    }

    /// The next token that is neither an end of line nor `;`.
    pub(crate) fn next_on_any_line(&mut self) -> Result<Token, SyntaxError> {
        loop {
            let token = self.next()?;
            if token != Token::EndOfLine {
                return Ok(token);
            }
        }
    }

    /// A name: a word of at most 127 bytes.
    pub(crate) fn name(&mut self) -> Result<Token, SyntaxError> {
        let token = self.next()?;
        if !token.is_string() {
            return Err(self.fail_with_token(&texts::EXPECTED_A_NAME, token));
        }
        let length = self.text().len();
        if length > MAX_NAME {
            return Err(self.fail(&texts::NAME_TOO_LONG, [self.text().to_vec(), length.to_string().into_bytes()]));
        }
        Ok(token)
    }

    /// A word of any length.
    pub(crate) fn word(&mut self) -> Result<(), SyntaxError> {
        let token = self.next()?;
        if token.is_string() { Ok(()) } else { Err(self.fail_with_token(&texts::EXPECTED_A_STRING, token)) }
    }

    fn fail_with_token(&self, text: &'static Text, token: Token) -> SyntaxError {
        let name = token.number_and_name().1.as_bytes().to_vec();
        let mut error = self.fail(text, [name, self.text().to_vec()]);
        error.hint = match token {
            Token::Number => Some(texts::QUOTE_DIGITS.to_owned()),
            Token::EndOfLine => Some(texts::VALUE_MISSING.to_owned()),
            Token::Error => Some(texts::CLOSE_QUOTE.to_owned()),
            _ => None,
        };
        error
    }

    /// Skips to the end of the statement; a `}` stays for the next call.
    pub(crate) fn skip_statement(&mut self) -> Result<(), SyntaxError> {
        loop {
            match self.next()? {
                Token::EndOfLine | Token::EndOfFile => return Ok(()),
                Token::CloseBrace => {
                    self.input.push_back();
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    /// The next character. At the end of an include the including file goes on with the character
    /// that had ended the name, and in the state that it had.
    fn read(&mut self) -> Result<Char, SyntaxError> {
        match self.input.current {
            Char::EndOfFile => return Err(self.fail(&texts::READ_PAST_END, [])),
            Char::EndOfLine => {
                if !self.input.read_line() {
                    if let Some(parent) = self.parents.pop() {
                        self.input = parent;
                    } else {
                        self.input.current = Char::EndOfFile;
                    }
                    return Ok(self.input.current);
                }
            }
            Char::Byte(_) | Char::Again => {}
        }
        Ok(self.input.next_in_line())
    }

    /// A token ends before the current character.
    fn end_before(&mut self, token: Token) -> Token {
        self.input.push_back();
        self.input.state = State::Between;
        token
    }

    fn begin(&mut self, state: State, first: Option<u8>) -> Result<(), SyntaxError> {
        self.input.begin(state);
        first.map_or(Ok(()), |byte| self.append(byte))
    }

    fn append(&mut self, byte: u8) -> Result<(), SyntaxError> {
        if self.input.text.len() >= MAX_TOKEN {
            let line = self.input.line_no.to_string().into_bytes();
            let begin = self.input.begin_line.to_string().into_bytes();
            return Err(self.fail(&texts::TOKEN_TOO_LONG, [self.input.name.clone(), line, begin]));
        }
        self.input.text.push(byte);
        Ok(())
    }

    fn between(&mut self, c: Char) -> Result<Option<Token>, SyntaxError> {
        if c.is_space() {
            return Ok(None);
        }
        let byte = match c {
            Char::Byte(byte) => byte,
            Char::EndOfLine | Char::Again => return Ok(Some(Token::EndOfLine)),
            Char::EndOfFile => return Ok(Some(Token::EndOfFile)),
        };
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' => {
                let state = if self.no_identifiers { State::String } else { State::Identifier };
                self.begin(state, Some(byte))?;
            }
            b'0'..=b'9' => self.begin(State::Number, Some(byte))?,
            b'#' => self.input.state = State::Comment,
            b'{' => return self.single(byte, Token::OpenBrace),
            b'}' => return self.single(byte, Token::CloseBrace),
            b'=' => return self.single(byte, Token::Equals),
            b',' => return self.single(byte, Token::Comma),
            b';' => return Ok(Some(Token::EndOfLine)),
            b'"' => self.begin(State::Quoted, None)?,
            b'@' => self.begin(State::Include, None)?,
            b'\\' => self.continue_line()?,
            0xef | 0xfe | 0xff if self.input.line_no == 1 && self.input.col_no == 1 => {
                return self.byte_order_mark(byte).map(Some);
            }
            _ => self.begin(State::String, Some(byte))?,
        }
        Ok(None)
    }

    fn single(&mut self, byte: u8, token: Token) -> Result<Option<Token>, SyntaxError> {
        self.begin(State::Between, Some(byte))?;
        Ok(Some(token))
    }

    /// After a backslash: before the end of the line, or a blank, the rest of the line is dropped,
    /// its end too. Any other character is dropped together with the backslash.
    fn continue_line(&mut self) -> Result<(), SyntaxError> {
        let mut c = self.read()?;
        if matches!(c, Char::Byte(b' ' | b'\n' | b'\r')) {
            while c != Char::EndOfLine {
                c = self.read()?;
            }
        }
        Ok(())
    }

    fn byte_order_mark(&mut self, first: u8) -> Result<Token, SyntaxError> {
        match first {
            0xef => {
                for expected in [0xbb, 0xbf] {
                    if self.read()? != Char::Byte(expected) {
                        return Ok(Token::Error);
                    }
                }
                Ok(Token::Utf8Mark)
            }
            0xff => Ok(if self.read()? == Char::Byte(0xfe) { Token::Utf16Mark } else { Token::Error }),
            _ => Err(self.fail(&texts::UTF16_BIG_ENDIAN, [])),
        }
    }

    fn number(&mut self, c: Char) -> Result<Option<Token>, SyntaxError> {
        match c {
            Char::Byte(byte @ b'0'..=b'9') => self.append(byte)?,
            Char::Byte(b',' | b';') | Char::EndOfLine => return Ok(Some(self.end_before(Token::Number))),
            _ if c.is_space() => return Ok(Some(self.end_before(Token::Number))),
            _ => {
                self.input.push_back();
                self.input.state = State::String;
            }
        }
        Ok(None)
    }

    fn identifier(&mut self, c: Char) -> Result<Option<Token>, SyntaxError> {
        match c {
            _ if c.is_space() => {}
            Char::Byte(b'=' | b'{' | b'}' | b';' | b',' | b'"' | b'#') | Char::EndOfLine => {
                return Ok(Some(self.end_before(Token::Identifier)));
            }
            Char::Byte(byte) => {
                if !byte.is_ascii_alphabetic() {
                    self.input.state = State::String;
                }
                self.append(byte)?;
            }
            Char::EndOfFile | Char::Again => {}
        }
        Ok(None)
    }

    fn string(&mut self, c: Char) -> Result<Option<Token>, SyntaxError> {
        match c {
            Char::Byte(b'=' | b'{' | b'}' | b';' | b',' | b'#') | Char::EndOfLine => {
                return Ok(Some(self.end_before(Token::UnquotedString)));
            }
            _ if c.is_space() => return Ok(Some(self.end_before(Token::UnquotedString))),
            Char::Byte(byte) => self.append(byte)?,
            Char::EndOfFile | Char::Again => {}
        }
        Ok(None)
    }

    fn quoted(&mut self, c: Char, escaped: &mut bool) -> Result<Option<Token>, SyntaxError> {
        match c {
            Char::EndOfFile => return Ok(Some(Token::Error)),
            Char::EndOfLine | Char::Again => *escaped = false,
            Char::Byte(byte) if *escaped => {
                *escaped = false;
                self.append(byte)?;
            }
            Char::Byte(b'\\') => *escaped = true,
            Char::Byte(b'"') => {
                // Peeks at the next character, for callers that need it.
                self.read()?;
                return Ok(Some(self.end_before(Token::QuotedString)));
            }
            Char::Byte(byte) => self.append(byte)?,
        }
        Ok(None)
    }

    fn include(&mut self, c: Char) -> Result<(), SyntaxError> {
        match c {
            Char::Byte(b'"') => self.input.state = State::IncludeQuoted,
            Char::Byte(b'{' | b'}' | b';' | b',' | b'#') | Char::EndOfLine => {
                self.open_include(&texts::CANNOT_OPEN_INCLUDE)?;
            }
            _ if c.is_space() => self.open_include(&texts::CANNOT_OPEN_INCLUDE)?,
            Char::Byte(byte) => self.append(byte)?,
            Char::EndOfFile | Char::Again => {}
        }
        Ok(())
    }

    fn include_quoted(&mut self, c: Char, escaped: &mut bool) -> Result<Option<Token>, SyntaxError> {
        let byte = match c {
            Char::EndOfFile => return Ok(Some(Token::Error)),
            Char::EndOfLine | Char::Again => END_OF_LINE_BYTE,
            Char::Byte(byte) => byte,
        };
        if *escaped {
            *escaped = false;
            self.append(byte)?;
        } else if byte == b'\\' {
            *escaped = true;
        } else if byte == b'"' {
            self.read()?;
            self.open_include(&texts::CANNOT_OPEN_QUOTED_INCLUDE)?;
        } else {
            self.append(byte)?;
        }
        Ok(None)
    }

    fn open_include(&mut self, failure: &'static Text) -> Result<(), SyntaxError> {
        self.input.state = State::Between;
        let name = self.input.text.clone();
        self.includes = self.includes.saturating_add(1);
        if self.parents.len() >= MAX_DEPTH || self.includes > MAX_INCLUDES {
            return Err(self.fail(&texts::TOO_MANY_INCLUDES, [name, texts::TOO_MANY_OPEN_FILES.into()]));
        }
        match self.contents(&name) {
            Ok(bytes) => {
                let parent = core::mem::replace(&mut self.input, Input::new(name, bytes));
                self.parents.push(parent);
                Ok(())
            }
            Err(reason) => {
                let mut error = self.fail(failure, [name.clone(), reason.into_bytes()]);
                let hint = if name.starts_with(b"/") { texts::INCLUDE_ABSOLUTE } else { texts::INCLUDE_RELATIVE };
                error.hint = Some(hint.to_owned());
                Err(error)
            }
        }
    }

    fn contents(&mut self, name: &[u8]) -> Result<Rc<Vec<u8>>, String> {
        let kept = self.kept.get(self.includes).filter(|(kept, _)| kept == name);
        let contents = if let Some((_, contents)) = kept {
            Rc::clone(contents)
        } else {
            let contents = Rc::new(self.read_source(name)?);
            self.kept.push((name.to_vec(), Rc::clone(&contents)));
            contents
        };
        self.bytes = self.bytes.saturating_add(contents.len());
        let is_too_large = contents.len() > MAX_FILE || self.bytes > MAX_BYTES;
        if is_too_large { Err(texts::FILE_TOO_LARGE.to_owned()) } else { Ok(contents) }
    }

    fn read_source(&mut self, name: &[u8]) -> Result<Vec<u8>, String> {
        let Some(command) = name.strip_prefix(b"|") else { return self.source.read_file(name) };
        let argv = split_arguments(command);
        if argv.is_empty() { Err(texts::NO_SUCH_FILE.to_owned()) } else { Ok(self.source.run_program(&argv)) }
    }
}
