//! Errors of OpenSSL, in the form in which the stock daemon shows them.

use std::fmt;

use openssl::error::ErrorStack;

/// The errors of one call, oldest first. May be empty.
#[derive(Clone, Debug, Default)]
pub struct OpenSslErrors(Vec<String>);

impl OpenSslErrors {
    /// One text for each error, such as
    /// `error:0308010C:digital envelope routines::unsupported`.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// An error that is not OpenSSL's.
    pub(crate) fn other(text: &str) -> Self {
        Self(vec![text.to_owned()])
    }
}

impl From<ErrorStack> for OpenSslErrors {
    fn from(stack: ErrorStack) -> Self {
        let line = |error: &openssl::error::Error| {
            let (library, reason) = (error.library().unwrap_or_default(), error.reason().unwrap_or_default());
            format!("error:{:08X}:{library}::{reason}", error.code())
        };
        Self(stack.errors().iter().map(line).collect())
    }
}

impl fmt::Display for OpenSslErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}
