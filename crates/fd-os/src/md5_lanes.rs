//! MD5 in [`crate::lanes`], for those who need no other digest.

use crate::lanes::Algorithm;

/// Bytes of an MD5 value.
pub const VALUE_LEN: usize = 16;

/// Whether this processor has what [`md5_each`] needs.
pub fn has_lanes() -> bool {
    Algorithm::Md5.has_lanes()
}

/// See [`Algorithm::each`].
pub fn md5_each<'m>(
    messages: impl IntoIterator<Item = &'m [u8]>,
    mut done: impl FnMut(usize, [u8; VALUE_LEN]),
) -> bool {
    Algorithm::Md5.each(messages, |number, value| {
        done(number, value.as_bytes().first_chunk().copied().unwrap_or_default());
    })
}

/// See [`Algorithm::stand_out`].
pub fn stand_out(lengths: impl Iterator<Item = usize> + Clone) -> usize {
    Algorithm::Md5.stand_out(lengths)
}
