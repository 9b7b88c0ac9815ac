//! `verify` (reference 02 §4.11).

use fd_bsock::scan::Lenient;

use super::refusal::Refusal;
use crate::texts;

/// Longest level of a Verify job, in bytes.
const LEVEL_MAX: usize = 30;

/// What a Verify job compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerifyLevel {
    /// The disk, for the Director to keep.
    Init,
    /// The disk with what an `init` has kept.
    Catalog,
    /// The volume with the catalog.
    Volume,
    /// The data on the volume with its digests.
    Data,
    /// The disk with what a backup has saved.
    DiskToCatalog,
}

impl VerifyLevel {
    /// The level's letter in the catalog.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Init => b'V',
            Self::Catalog => b'C',
            Self::Volume => b'O',
            Self::Data => b'A',
            Self::DiskToCatalog => b'd',
        }
    }

    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        match word(frame)?.to_ascii_lowercase().as_slice() {
            b"init" => Some(Self::Init),
            b"catalog" => Some(Self::Catalog),
            b"volume" => Some(Self::Volume),
            b"data" => Some(Self::Data),
            b"disk_to_catalog" => Some(Self::DiskToCatalog),
            _ => None,
        }
    }
}

fn word(frame: &[u8]) -> Option<&[u8]> {
    Some(Lenient::new(frame).text("verify level=")?.word(LEVEL_MAX))
}

pub(super) fn refused(frame: &[u8]) -> Refusal {
    let text = if word(frame).is_some() { texts::BAD_VERIFY_LEVEL } else { texts::BAD_VERIFY_COMMAND };
    Refusal::reply(text.of(frame))
}
