//! The digests of a backup: one [`Digester`] for MD5, SHA-1, SHA-256, SHA-512, XXH64, XXH3-64 and XXH3-128, with the
//! bytes exactly as they stand in a digest record (reference 04 §9).
//!
//! Not here: which bytes are digested and which option asks for it (`fd-backup`), and key files.

mod digest;

pub use digest::{DigestError, DigestKind, DigestValue, Digester};
