//! Compressors, made once and used for file after file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fd_compress::{CompressError, Compressor};
use fd_records::Compression;

/// The compressors that the files so far have asked for.
#[derive(Default)]
pub(crate) struct Compressors(HashMap<Compression, Compressor>);

impl Compressors {
    /// The compressor of this kind; makes it if there is none yet.
    pub(crate) fn ready(&mut self, compression: Compression) -> Result<&mut Compressor, CompressError> {
        Ok(match self.0.entry(compression) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Compressor::new(compression)?),
        })
    }
}
