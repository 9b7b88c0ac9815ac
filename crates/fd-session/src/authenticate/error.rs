//! Why an authentication fails.

use std::fmt;

use thiserror::Error;

/// The peer went before it said anything, as far as an error has to say so.
const NO_STARTTLS: &str = "[FE0071] Unable to get starttls protocol";
/// A peer that does not encrypt, where that is refused.
const TLS_REQUIRED: &str = "the connection is not encrypted, and tls.require in bacula-fd.toml refuses that";
/// A peer that has nothing better to say than what we said.
const CHALLENGE_REFLECTED: &str =
    "the peer sent our own challenge back to us; it may not know the password, and is not answered";

/// Why an authentication failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AuthError {
    /// The peer's answer to our challenge is wrong.
    WrongPassword,
    /// The handshake failed because the peer's pre-shared key, which is made of the password, is
    /// another one.
    WrongKey(String),
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

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongPassword => {
                f.write_str("wrong password: the peer's answer to our challenge does not fit our key")
            }
            Self::Refused(got) => {
                write!(f, "the peer refused our answer to its challenge (wanted \"1000 OK auth\", got {got})")
            }
            Self::Requirement { ours, peers } => {
                write!(f, "no common encryption: we need tlspsk={ours}, the peer said tlspsk={peers}")
            }
            Self::Clear => f.write_str(TLS_REQUIRED),
            Self::Reflected => f.write_str(CHALLENGE_REFLECTED),
            // Where the passwords are to be checked, it says so.
            Self::Tls(why) | Self::WrongKey(why) => write!(f, "TLS handshake failed: {why}"),
            Self::NoStart(got) => write!(f, "waiting for starttls or a challenge: {got}"),
            Self::Unexpected { what, got } => write!(f, "{what}: {got}"),
        }
    }
}

impl AuthError {
    /// What the stock daemon says of it to a console, beside that there is a problem; mostly
    /// nothing.
    pub fn detail(&self) -> &str {
        match self {
            Self::Tls(why) | Self::WrongKey(why) => why,
            Self::Clear => TLS_REQUIRED,
            Self::Reflected => CHALLENGE_REFLECTED,
            Self::NoStart(_) => NO_STARTTLS,
            _ => "",
        }
    }
}
