//! Whether the data that was restored is the data that was saved: the digests that are compared with the volume's.

mod check;
mod long;
mod small;
mod worker;

pub(crate) use check::{DigestCheck, LEAST_LONG, Promise, Verdict};
pub(crate) use long::{Awaited, Finding, LongPromise};
pub(crate) use small::WrongFile;
