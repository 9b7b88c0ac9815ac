//! PKI: what is encrypted for the owners of certificates, and signed by this File Daemon (reference
//! 04 §12, 05 §11).
//!
//! A backup makes one [`Session`] per job: a content key, encrypted for each recipient. Each file
//! has an initialization vector of its own, a session record (stream 22) that holds it, data that
//! an [`Encryptor`] encrypts, and a signature record (stream 19) from a [`Signer`]. A restore opens
//! the session record with a [`SessionOpener`], decrypts the data with a [`Decryptor`] and checks
//! the signature with [`Signature::verify`].

mod cipher;
mod data;
mod error;
mod keys;
mod records;
mod session;
mod signature;
#[cfg(test)]
mod tests;

pub use data::{DataError, Decryptor, Encryptor};
pub use error::OpenSslErrors;
pub use keys::{Certificate, KeyError, KeyPair, KeyRing, PrivateKey, TrustedSigner};
pub use session::{FileKey, Iv, Session, SessionError, SessionOpener};
pub use signature::{Signature, SignatureError, SignatureStore, SignatureVerdict, Signer, SigningError};
