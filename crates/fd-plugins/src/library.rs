//! Third-party plugins: libraries with the C interface of version 23 (reference 07 §3).

pub(crate) mod abi;
#[cfg(target_arch = "x86_64")]
pub(crate) mod variadic;
