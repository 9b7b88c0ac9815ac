//! Digests of restored data, compared with what the volume records.

mod check;
mod checked;
mod expected;
mod read_back;
mod taken;

pub(crate) use check::{Answer, DigestCheck, may_be_read_back};
pub(crate) use checked::{Checked, Finding, Recorded, Ticket};
