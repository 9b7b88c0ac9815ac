//! MD5 in [`crate::multi_buffer`], for those who need no other digest.

use crate::multi_buffer::{Algorithm, Lanes};
use crate::processor::Processor;

/// Bytes of an MD5 value.
pub const VALUE_LEN: usize = 16;

/// Who has this can make MD5 of many messages at a time.
#[derive(Clone, Copy, Debug)]
pub struct Md5Lanes(Lanes);

impl Md5Lanes {
    /// See [`Algorithm::lanes`].
    pub fn new(processor: Processor) -> Option<Self> {
        Algorithm::Md5.lanes(processor).map(Self)
    }

    /// See [`Lanes::each`].
    pub fn each<'m>(self, messages: impl IntoIterator<Item = &'m [u8]>, mut done: impl FnMut(usize, [u8; VALUE_LEN])) {
        self.0.each(messages, |number, value| {
            if let Some(value) = value.as_bytes().first_chunk() {
                done(number, *value);
            }
        });
    }

    /// See [`Lanes::stand_out`].
    pub fn stand_out(self, lengths: impl Iterator<Item = usize> + Clone) -> usize {
        self.0.stand_out(lengths)
    }
}
