//! Compressors, created once and used for many files.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fd_compress::{CompressError, Compressor};
use fd_records::Compression;

/// The compressors that were used so far.
#[derive(Default)]
pub(crate) struct Compressors(HashMap<Compression, Compressor>);

impl Compressors {
    /// The compressor of this kind, created if it is new.
    pub(crate) fn ready(&mut self, compression: Compression) -> Result<&mut Compressor, CompressError> {
        Ok(match self.0.entry(compression) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Compressor::new(compression)?),
        })
    }
}
