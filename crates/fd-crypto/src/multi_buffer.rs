//! Multi-buffer kernels: MD5 and SHA-256 of 8 or 16 messages at a time, one in each element of the
//! vector registers.
//!
//! Each step of a digest depends on the step before, so a single message leaves most of a processor
//! idle. Messages are independent of each other: 16 of them side by side cost little more than one.
//! For a single message, OpenSSL is as fast or faster.
//!
//! - `kernels`: the choice for a processor.
//! - `many`: whole messages in memory, for [`crate::DigestBatch`].
//! - [`SideBySide`]: long messages whose data arrives in parts.
//! - `x8`, with `x8_md5` and `x8_sha256`, and `x16_avx2`: the kernels.
//!
//! All `unsafe` code of the crate is in this module.

mod algorithm;
#[cfg_attr(not(target_arch = "x86_64"), allow(unused, reason = "there are no kernels"))]
mod constants;
mod kernels;
mod many;
mod message;
#[cfg_attr(not(target_arch = "x86_64"), allow(unused, reason = "there are no kernels"))]
mod side_by_side;

#[cfg(target_arch = "x86_64")]
mod x16_avx2;
#[cfg(target_arch = "x86_64")]
mod x8;
#[cfg(target_arch = "x86_64")]
mod x8_md5;
#[cfg(target_arch = "x86_64")]
mod x8_sha256;

#[cfg(test)]
mod tests;

pub use algorithm::BLOCK;
pub(crate) use many::Many;
pub use side_by_side::SideBySide;
