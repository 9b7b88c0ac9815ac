//! Streaming digests of several kinds over the same bytes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fd_records::{DigestKind, DigestValue};

use crate::digest::{DigestError, Digester};
use crate::set::DigestSet;

/// Computes digests of one message after the other while the data is read. The [`Digester`] of a
/// kind is made for the first message with that kind, and used again for later ones.
#[derive(Default)]
pub struct Digesters {
    made: HashMap<DigestKind, Digester>,
    /// The kinds of the present message.
    kinds: DigestSet,
    /// As if OpenSSL refused these.
    #[cfg(test)]
    refused: DigestSet,
}

impl Digesters {
    /// The digester of this kind, for a single message without [`Self::begin`].
    ///
    /// # Errors
    /// When OpenSSL refuses the algorithm.
    pub fn ready(&mut self, kind: DigestKind) -> Result<&mut Digester, DigestError> {
        #[cfg(test)]
        if self.refused.contains(kind) {
            return Err(DigestError::refused(kind));
        }
        Ok(match self.made.entry(kind) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Digester::new(kind)?),
        })
    }

    /// Begins a message with digests of these kinds, except those whose algorithm OpenSSL refuses.
    ///
    /// # Errors
    /// The first refusal.
    pub fn begin(&mut self, kinds: DigestSet) -> Result<(), DigestError> {
        self.kinds = DigestSet::EMPTY;
        let mut begun = Ok(());
        for kind in kinds.iter() {
            match self.ready(kind).map(Digester::restart) {
                Ok(()) => self.kinds = self.kinds.with(kind),
                Err(refused) => begun = begun.and(Err(refused)),
            }
        }
        begun
    }

    /// The kinds of the present message.
    pub const fn kinds(&self) -> DigestSet {
        self.kinds
    }

    /// Takes the next bytes of the message.
    pub fn update(&mut self, bytes: &[u8]) {
        let kinds = self.kinds;
        let running = self.made.values_mut().filter(|digester| kinds.contains(digester.kind()));
        running.for_each(|digester| digester.update(bytes));
    }

    /// The digest of this kind of the whole message.
    ///
    /// # Errors
    /// When OpenSSL fails or refuses the algorithm.
    pub fn finish(&mut self, kind: DigestKind) -> Result<DigestValue, DigestError> {
        self.ready(kind)?.finish()
    }

    /// The digest of this kind of a message in memory.
    pub(crate) fn digest(&mut self, kind: DigestKind, data: &[u8]) -> Result<DigestValue, DigestError> {
        self.begin(DigestSet::EMPTY.with(kind))?;
        self.update(data);
        self.finish(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As MD5 under a FIPS policy.
    #[test]
    fn a_kind_that_is_refused_costs_no_other() {
        let refused = DigestSet::EMPTY.with(DigestKind::Md5);
        let mut digesters = Digesters { refused, ..Digesters::default() };
        let others = DigestSet::EMPTY.with(DigestKind::Sha1).with(DigestKind::Sha256);
        let error = digesters.begin(others.with(DigestKind::Md5)).unwrap_err();
        assert_eq!((error.kind(), digesters.kinds()), (DigestKind::Md5, others));
        digesters.update(b"data");
        for kind in others.iter() {
            let mut alone = Digester::new(kind).unwrap();
            alone.update(b"data");
            assert_eq!(digesters.finish(kind).unwrap(), alone.finish().unwrap());
        }
        assert_eq!(digesters.finish(DigestKind::Md5).unwrap_err().kind(), DigestKind::Md5);
    }

    #[test]
    fn each_kind_of_a_message_is_that_of_a_digester_alone() {
        let mut digesters = Digesters::default();
        let sets = [DigestKind::ALL.into_iter().collect(), DigestSet::EMPTY.with(DigestKind::Sha1), DigestSet::EMPTY];
        for (number, kinds) in sets.into_iter().cycle().take(7).enumerate() {
            digesters.begin(kinds).unwrap();
            digesters.update(b"the beginning of a message that is given up");
            digesters.begin(kinds).unwrap();
            assert_eq!(digesters.kinds(), kinds);
            let data = vec![7; 1000 + number];
            data.chunks(77).for_each(|part| digesters.update(part));
            for kind in kinds.iter() {
                let mut alone = Digester::new(kind).unwrap();
                alone.update(&data);
                assert_eq!(digesters.finish(kind).unwrap(), alone.finish().unwrap());
            }
        }
    }
}
