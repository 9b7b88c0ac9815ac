//! What the values of directives are read with: the lexer, and what is read so far.

use crate::syntax::document::RawResource;
use crate::syntax::lexer::Lexer;

/// What a pass takes from the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pass {
    /// Resources, and all values but those of the second pass.
    First,
    /// String lists, references to other resources, `Connect` lines.
    Second,
}

/// How passwords are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passwords {
    /// Keys, as the daemon uses them.
    Keys,
    /// Plain strings, as the JSON view shows them.
    Clear,
}

/// The state of one pass.
pub(crate) struct Reader<'s> {
    pub(crate) lexer: Lexer<'s>,
    pub(crate) pass: Pass,
    pub(crate) passwords: Passwords,
    pub(crate) resources: &'s mut Vec<RawResource>,
}
