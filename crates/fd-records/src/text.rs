//! Numbers, digests, names and lines as text.

pub(crate) mod c_text;
pub(crate) mod decimal;
pub mod digest_text;
pub(crate) mod names;
pub(crate) mod number;
