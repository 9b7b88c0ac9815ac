//! What a worker makes once and uses for file after file: digesters and compressors.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fd_compress::{CompressError, Compressor};
use fd_crypto::{DigestError, DigestKind, Digester};
use fd_fileset::Compression;

/// The digesters and compressors that the files so far have asked for.
#[derive(Default)]
pub(crate) struct Tools {
    digesters: HashMap<DigestKind, Digester>,
    compressors: HashMap<Compression, Compressor>,
}

impl Tools {
    /// Makes sure that there is a digester of this kind.
    pub(crate) fn prepare_digest(&mut self, kind: DigestKind) -> Result<(), DigestError> {
        if let Entry::Vacant(place) = self.digesters.entry(kind) {
            place.insert(Digester::new(kind)?);
        }
        Ok(())
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

    /// The digester and the compressor for one file; those that were prepared.
    pub(crate) fn get(
        &mut self,
        digest: Option<DigestKind>,
        compression: Option<Compression>,
    ) -> (Option<&mut Digester>, Option<&mut Compressor>) {
        let digester = digest.and_then(|kind| self.digesters.get_mut(&kind));
        let compressor = compression.and_then(|compression| self.compressors.get_mut(&compression));
        (digester, compressor)
    }
}

/// The digest that a FileSet asks for.
pub(crate) fn digest_kind(kind: fd_fileset::DigestKind) -> DigestKind {
    match kind {
        fd_fileset::DigestKind::Md5 => DigestKind::Md5,
        fd_fileset::DigestKind::Sha1 => DigestKind::Sha1,
        fd_fileset::DigestKind::Sha256 => DigestKind::Sha256,
        fd_fileset::DigestKind::Sha512 => DigestKind::Sha512,
        fd_fileset::DigestKind::Xxh64 => DigestKind::Xxh64,
        fd_fileset::DigestKind::Xxh3_64 => DigestKind::Xxh3_64,
        fd_fileset::DigestKind::Xxh3_128 => DigestKind::Xxh3_128,
    }
}
