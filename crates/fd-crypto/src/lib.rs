//! Digests, and the encryption and signatures of PKI.
//!
//! One [`Digester`] makes MD5, SHA-1, SHA-256, SHA-512, XXH64, XXH3-64 and XXH3-128, with the bytes exactly as they stand
//! in a digest record (reference 04 §9). [`pki`] makes and opens the records that hold encrypted data, its keys and
//! signatures (reference 04 §12). The algorithms are OpenSSL's. [`Fingerprints`] are for within a job: no volume holds one.
//!
//! Not here: which bytes are digested and which option asks for it (`fd-backup`), and where key files are.

mod batch;
mod digest;
mod digesters;
mod fingerprint;
#[allow(unsafe_code, reason = "the kernels use the processor's vector instructions")]
pub mod multi_buffer;
pub mod pki;
pub mod processor;
mod set;
mod texts;

pub use batch::{DigestBatch, suits_batch};
pub use digest::{DigestError, Digester};
pub use digesters::Digesters;
pub use fingerprint::Fingerprints;
pub use set::{DigestSet, DigestValues};
