//! What is to be compared, by the options of the FileSet (reference 05 §20.1).

use fd_fileset::FileSet;
use fd_records::DigestKind;

/// What a verify compares.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Checks {
    /// The length of the data with the recorded size.
    pub size: bool,
    /// The data with digests of this kind.
    pub digest: Option<DigestKind>,
    /// Digests were asked for, but the FileSet makes none.
    pub unsigned: bool,
}

impl Checks {
    /// What a FileSet asks for.
    pub fn of(file_set: &FileSet) -> Self {
        let mut size = false;
        let mut wants_digest = false;
        let mut digest = None;
        for options in file_set.includes().iter().flat_map(fd_fileset::Include::options) {
            size = options.verify.contains(&b's');
            wants_digest |= DigestKind::ALL.iter().any(|kind| options.verify.contains(&kind.verify_letter()));
            digest = options.flags.digest();
            if digest.is_some() {
                break;
            }
        }
        Self { size, digest: digest.filter(|_| wants_digest), unsigned: wants_digest && digest.is_none() }
    }
}
