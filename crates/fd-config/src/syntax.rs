//! From bytes to the values that a file gives: source, lexer, grammar, and the explanation of
//! errors.

pub(crate) mod directives;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod explain;
pub(crate) mod input;
pub(crate) mod lexer;
pub(crate) mod parser;
pub(crate) mod reader;
pub(crate) mod similar;
pub(crate) mod source;
pub(crate) mod token;
