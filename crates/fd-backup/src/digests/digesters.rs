//! Digesters, made once and used for file after file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fd_crypto::{DigestError, Digester};
use fd_records::{DigestKind, DigestValue};

/// The digesters that the files so far have asked for.
#[derive(Default)]
pub(crate) struct Digesters(HashMap<DigestKind, Digester>);

impl Digesters {
    /// The digester of this kind; makes it if there is none yet.
    pub(crate) fn ready(&mut self, kind: DigestKind) -> Result<&mut Digester, DigestError> {
        Ok(match self.0.entry(kind) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Digester::new(kind)?),
        })
    }

    /// The digesters of these kinds, which differ; those that were made.
    pub(crate) fn get(&mut self, kinds: [Option<DigestKind>; 2]) -> [Option<&mut Digester>; 2] {
        match kinds {
            [Some(one), Some(other)] if one != other => self.0.get_disjoint_mut([&one, &other]),
            [one, other] => [one.or(other).and_then(|kind| self.0.get_mut(&kind)), None],
        }
    }

    /// The digest of what the digester of this kind was given since the last one.
    pub(crate) fn finish(&mut self, kind: DigestKind) -> Result<DigestValue, DigestError> {
        self.ready(kind)?.finish()
    }
}
