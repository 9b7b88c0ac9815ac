//! The tokens of a configuration file, with their numbers and names in messages.

/// What the lexer hands out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    EndOfFile,
    Number,
    Identifier,
    UnquotedString,
    QuotedString,
    OpenBrace,
    CloseBrace,
    Equals,
    Comma,
    EndOfLine,
    Error,
    Utf8Mark,
    Utf16Mark,
}

impl Token {
    /// Number and name as in messages (reference 06 §1.4).
    pub(crate) const fn number_and_name(self) -> (u32, &'static str) {
        match self {
            Self::EndOfFile => (101, "T_EOF"),
            Self::Number => (102, "T_NUMBER"),
            Self::Identifier => (104, "T_IDENTIFIER"),
            Self::UnquotedString => (105, "T_UNQUOTED_STRING"),
            Self::QuotedString => (106, "T_QUOTED_STRING"),
            Self::OpenBrace => (108, "T_BOB"),
            Self::CloseBrace => (109, "T_EOB"),
            Self::Equals => (110, "T_EQUALS"),
            Self::Comma => (111, "T_COMMA"),
            Self::EndOfLine => (112, "T_EOL"),
            Self::Error => (200, "T_ERROR"),
            Self::Utf8Mark => (201, "T_UTF8_BOM"),
            Self::Utf16Mark => (202, "T_UTF16_BOM"),
        }
    }

    /// A word in any spelling.
    pub(crate) const fn is_string(self) -> bool {
        matches!(self, Self::Identifier | Self::UnquotedString | Self::QuotedString)
    }

    /// A word or a number without quotes.
    pub(crate) const fn is_bare(self) -> bool {
        matches!(self, Self::Identifier | Self::UnquotedString | Self::Number)
    }
}
