//! Whether the data that was restored is the data that was saved: the digests that are compared
//! with the volume's.

mod check;
mod checked;
mod long;
mod small;
mod streamed;

pub(crate) use check::{Answer, DigestCheck, may_be_read_back};
pub(crate) use checked::{Checked, Finding, Recorded, Ticket};
