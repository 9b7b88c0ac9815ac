//! Digests, and the encryption and signatures of PKI.
//!
//! A backup and a restore compute digests in three ways. The values are those of a digest record
//! (reference 04 §9).
//!
//! - Streaming: [`Digester`] computes one kind while the data is read, [`Digesters`] several.
//! - Batched: [`DigestBatch`] keeps small messages and computes their digests together.
//! - Side by side: [`multi_buffer::SideBySide`] computes the digests of several long messages
//!   together, as their data arrives.
//!
//! The algorithms are OpenSSL's and those of `xxhash-rust`; the last two ways use the kernels of
//! [`multi_buffer`], as far as the [`processor`] has the instructions. [`Fingerprints`] are for use
//! within one job.
//!
//! [`pki`] makes and opens the records that hold encrypted data, its keys and signatures
//! (reference 04 §12).
//!
//! Not here: which bytes are digested, which option asks for a digest, and where key files are.

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
