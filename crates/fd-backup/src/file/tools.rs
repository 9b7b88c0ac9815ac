//! What a worker makes once and uses for file after file: digesters and compressors.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fd_compress::{CompressError, Compressor};
use fd_crypto::{DigestError, Digester};
use fd_fileset::Compression;
use fd_records::{DigestKind, DigestValue};

/// The digesters and compressors that the files so far have asked for.
#[derive(Default)]
pub(crate) struct Tools {
    digesters: HashMap<DigestKind, Digester>,
    compressors: HashMap<Compression, Compressor>,
}

impl Tools {
    /// Makes sure that there is a digester of this kind.
    pub(crate) fn prepare_digest(&mut self, kind: DigestKind) -> Result<(), DigestError> {
        self.ready(kind).map(|_| ())
    }

    /// The digester of this kind; makes it if there is none yet.
    pub(crate) fn ready(&mut self, kind: DigestKind) -> Result<&mut Digester, DigestError> {
        Ok(match self.digesters.entry(kind) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Digester::new(kind)?),
        })
    }

    /// Makes sure that there is a compressor of this kind.
    pub(crate) fn prepare_compression(&mut self, compression: Compression) -> Result<(), CompressError> {
        if let Entry::Vacant(place) = self.compressors.entry(compression) {
            place.insert(match compression {
                Compression::Gzip(level) => Compressor::gzip(level)?,
                Compression::Lzo => Compressor::lzo(),
                Compression::Zstd(level) => Compressor::zstd(level)?,
            });
        }
        Ok(())
    }

    /// The digesters of these kinds, which differ, and the compressor for one file; those that were prepared.
    pub(crate) fn get(
        &mut self,
        kinds: [Option<DigestKind>; 2],
        compression: Option<Compression>,
    ) -> ([Option<&mut Digester>; 2], Option<&mut Compressor>) {
        let digesters = match kinds {
            [Some(one), Some(other)] if one != other => self.digesters.get_disjoint_mut([&one, &other]),
            [one, other] => [one.or(other).and_then(|kind| self.digesters.get_mut(&kind)), None],
        };
        let compressor = compression.and_then(|compression| self.compressors.get_mut(&compression));
        (digesters, compressor)
    }

    /// A digester that was prepared.
    pub(crate) fn digester(&mut self, kind: DigestKind) -> Option<&mut Digester> {
        self.digesters.get_mut(&kind)
    }

    /// The digest of what the digester of this kind has seen since the last one.
    pub(crate) fn finish_digest(&mut self, kind: DigestKind) -> Result<DigestValue, DigestError> {
        self.ready(kind)?.finish()
    }
}
