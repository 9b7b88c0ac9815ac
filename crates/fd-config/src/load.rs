//! Reading, parsing and checking in one call.

use crate::checks::{CheckFailure, Surroundings};
use crate::resources::Config;
use crate::stock_message::StockMessage;
use crate::syntax::document::Document;
use crate::syntax::error::SyntaxError;
use crate::syntax::parser;
use crate::syntax::reader::Passwords;
use crate::syntax::source::Source;

/// Why there is no configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    /// The file can't be read or understood.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The file is understood, but does not hold together.
    #[error(transparent)]
    Checks(#[from] CheckFailure),
}

impl LoadError {
    /// What the stock daemon prints on standard output, in this order.
    pub fn messages(&self) -> Vec<StockMessage> {
        match self {
            Self::Syntax(error) => vec![error.message()],
            Self::Checks(failure) => failure.messages().to_vec(),
        }
    }

    /// The explanation beside it: the line with a caret, and hints. Ends in LF; empty where the
    /// stock text says enough.
    pub fn explanation(&self) -> String {
        match self {
            Self::Syntax(error) => error.explanation(),
            Self::Checks(failure) => failure.explanation(),
        }
    }

    /// The exit status of the stock daemon.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Syntax(error) => error.exit_status(),
            Self::Checks(_) => 1,
        }
    }
}

/// Reads a file with its includes, without checking the whole.
///
/// # Errors
/// [`SyntaxError`] for the first line that can't be understood.
pub fn parse(file_name: &[u8], source: &mut dyn Source) -> Result<Document, SyntaxError> {
    parser::parse(file_name, source, Passwords::Keys)
}

/// As [`parse`], for the JSON view: passwords are plain strings, also in messages.
///
/// # Errors
/// [`SyntaxError`] for the first line that can't be understood.
pub fn parse_for_json(file_name: &[u8], source: &mut dyn Source) -> Result<Document, SyntaxError> {
    parser::parse(file_name, source, Passwords::Clear)
}

/// Reads a file with its includes and makes the daemon's configuration of it.
///
/// # Errors
/// [`LoadError`]: all that the stock daemon would print, and an explanation.
pub fn load(
    file_name: &[u8],
    source: &mut dyn Source,
    surroundings: &mut dyn Surroundings,
) -> Result<Config, LoadError> {
    Ok(parse(file_name, source)?.check(surroundings)?)
}
