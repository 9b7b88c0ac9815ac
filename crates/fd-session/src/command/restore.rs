//! `restore` (reference 02 §4.12, 05 §1.2).

use fd_bsock::scan::{Lenient, unbash_spaces};
use fd_records::Replace;

/// Where a restore puts what it restores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Where {
    /// Below this folder; empty: in place.
    Folder(Vec<u8>),
    /// At names made by this list of expressions.
    Regex(Vec<u8>),
}

/// What a `restore` command says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestoreOrder {
    /// How many files the Director expects.
    pub files: u32,
    /// What to do about existing objects.
    pub replace: Replace,
    /// Targets of absolute symbolic links move too.
    pub prelinks: bool,
    /// The place.
    pub place: Where,
}

impl RestoreOrder {
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        Self::form(frame, true).or_else(|| Self::form(frame, false))
    }

    fn form(frame: &[u8], with_files: bool) -> Option<Self> {
        let mut scan = Lenient::new(frame);
        scan.text("restore ")?;
        let files = if with_files { u32::try_from(scan.text("files=")?.i32()).unwrap_or(0) } else { 0 };
        let replace = Replace::from_letter(scan.text(" replace=")?.byte());
        let prelinks = scan.text(" prelinks=")?.i32() != 0;
        scan.text(" ")?;
        let mut regex = scan.clone();
        let place = if let Some(scan) = scan.text("where=") {
            Where::Folder(decoded(scan.word(usize::MAX)))
        } else {
            Where::Regex(decoded(regex.text("regexwhere=")?.word(usize::MAX)))
        };
        Some(Self { files, replace, prelinks, place })
    }
}

/// A lone `/` means nothing; blanks come back (reference 05 §1.2).
fn decoded(place: &[u8]) -> Vec<u8> {
    if place == b"/" { Vec::new() } else { unbash_spaces(place) }
}
