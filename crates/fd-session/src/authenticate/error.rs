//! Why an authentication fails. Its words stand in `texts.rs`.

use thiserror::Error;

/// Why an authentication failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AuthError {
    /// The peer's answer to our challenge is wrong.
    WrongPassword,
    /// The peer does not accept our answer.
    Refused(String),
    /// One side requires encryption that the other does not offer.
    Requirement {
        /// Our number.
        ours: i32,
        /// The peer's number.
        peers: i32,
    },
    /// Encryption is required, and the peer talks in clear.
    Clear,
    /// The challenge is our own.
    Reflected,
    /// The handshake failed.
    Tls(String),
    /// The peer's first frame is neither `starttls` nor a challenge, or there is none.
    NoStart(String),
    /// The peer said something else.
    Unexpected {
        /// What was due.
        what: &'static str,
        /// What came.
        got: String,
    },
}
