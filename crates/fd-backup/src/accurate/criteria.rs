//! The letters of the `Accurate` and `BaseJob` options: which attributes decide whether a file has
//! changed (reference 04 §13.3).

use fd_records::{DigestKind, Stat};

use super::attributes::Fields;

/// What the letter `M` compares with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The job saves changes only.
    pub(super) incremental: bool,
    /// Seconds since 1970.
    pub(super) since: i64,
    /// Only the modification time counts.
    pub(super) mtime_only: bool,
}

/// Whether the attributes differ by these letters.
pub(super) fn differs(letters: &[u8], known: &Stat, now: &Stat, times: Times) -> bool {
    letters.iter().any(|letter| match letter {
        b'i' => now.ino != known.ino,
        b'p' => now.mode != known.mode,
        b'n' => now.nlink != known.nlink,
        b'u' => now.uid != known.uid,
        b'g' => now.gid != known.gid,
        b's' => now.size != known.size,
        b'a' => now.atime != known.atime,
        b'm' => now.mtime != known.mtime,
        b'c' => now.ctime != known.ctime,
        b'd' => now.size < known.size,
        b'M' => times.incremental && now.mtime > times.since && (times.mtime_only || now.ctime > times.since),
        b'A' => true,
        _ => false,
    })
}

/// Whether the digest of the data is compared. The digit once named its kind; all digits mean the
/// same now.
pub(super) fn wants_checksum(letters: &[u8]) -> bool {
    DigestKind::ALL.iter().any(|kind| letters.contains(&kind.verify_letter()))
}

/// Whether the digest is compared only if attributes differ. With equal data, only the attributes
/// are sent.
pub(super) fn wants_confirmation(letters: &[u8]) -> bool {
    letters.contains(&b'o')
}

/// Whether an entry that has the attributes of the list in all that [`fields`] names, and its
/// times, is unchanged: no letter asks for its data or what else only a lookup tells, or compares
/// with something else.
pub(super) fn asks_attributes_only(letters: &[u8]) -> bool {
    !wants_checksum(letters) && !letters.iter().any(|letter| b"aMA".contains(letter))
}

/// The attributes that these letters compare.
pub(super) fn fields(letters: &[u8]) -> Fields {
    letters.iter().fold(Fields::default(), |fields, letter| {
        fields.union(match letter {
            b'i' => Fields::INO,
            b's' | b'd' => Fields::SIZE,
            b'a' => Fields::ATIME,
            b'p' | b'n' | b'u' | b'g' => Fields::CLASS,
            _ => Fields::default(),
        })
    })
}

#[cfg(test)]
mod tests;
