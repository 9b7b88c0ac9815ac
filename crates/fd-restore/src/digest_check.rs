//! Whether the data that was restored is the data that was saved, by the digest records of the volume.
//!
//! The stock daemon ignores them. The digest follows the data, so its kind is known in time only from the files
//! before: until the first digest of a job has come, every kind is computed for the first bytes of each file, and a
//! job without digests soon stops computing.

use fd_crypto::{DigestKind, DigestValue, Digester};
use fd_records::Stream;

/// As long as the kind is not known, files up to this length are checked.
const GUESS_LIMIT: u64 = 4 << 20;

/// After so many files in a row without a digest no more are computed, until one comes.
const PATIENCE: u32 = 32;

/// What a signature can be over (reference 04 §12.4).
const SIGNED_KINDS: [DigestKind; 3] = [DigestKind::Md5, DigestKind::Sha1, DigestKind::Sha256];

/// What a digest record said about the data.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The same, or nothing to compare with.
    Fine,
    /// Another.
    Differs(DigestKind, DigestValue),
}

/// Computes digests of what is restored.
pub(crate) struct DigestCheck {
    enabled: bool,
    digesters: Vec<Digester>,
    /// Bytes of the current file.
    length: u64,
    /// Whether the current file is being digested.
    active: bool,
    /// Whether a digest record has said which kind to compute.
    kind_known: bool,
    /// Files in a row that had no digest.
    without: u32,
    /// The digest of the current file, once its record has been compared.
    compared: Option<DigestValue>,
    signed: SignedDigests,
}

/// Digests of the current file for its signature: the kinds that signatures of this job were over so far; all there are
/// before the first one.
struct SignedDigests {
    digesters: Vec<Digester>,
    kind_known: bool,
}

impl SignedDigests {
    fn new(wanted: bool) -> Self {
        let kinds = SIGNED_KINDS.into_iter().filter(|_| wanted);
        Self { digesters: kinds.filter_map(|kind| Digester::new(kind).ok()).collect(), kind_known: false }
    }

    fn finish(&mut self, kind: DigestKind) -> Option<DigestValue> {
        if !self.kind_known {
            self.kind_known = true;
            self.digesters.retain(|digester| digester.kind() == kind);
        }
        if let Some(digester) = self.digesters.iter_mut().find(|digester| digester.kind() == kind) {
            return digester.finish().ok();
        }
        self.digesters.extend(Digester::new(kind));
        None
    }
}

impl DigestCheck {
    /// With `enabled`, digest records are compared; with `signed`, there will be digests for signatures.
    pub(crate) fn new(enabled: bool, signed: bool) -> Self {
        let digesters = if enabled {
            DigestKind::ALL.into_iter().filter_map(|kind| Digester::new(kind).ok()).collect()
        } else {
            Vec::new()
        };
        Self {
            enabled,
            digesters,
            length: 0,
            active: false,
            kind_known: false,
            without: 0,
            compared: None,
            signed: SignedDigests::new(signed),
        }
    }

    /// A file begins.
    pub(crate) fn begin(&mut self) {
        self.abandon();
        self.compared = None;
        self.signed.digesters.iter_mut().for_each(Digester::restart);
        self.active = self.enabled && self.without < PATIENCE;
        self.without = self.without.saturating_add(1);
    }

    /// The current file can't be checked any more.
    pub(crate) fn abandon(&mut self) {
        if self.active && self.length > 0 {
            for digester in &mut self.digesters {
                // Only to make it ready for the next file.
                let _value = digester.finish();
            }
        }
        self.active = false;
        self.length = 0;
    }

    /// The next bytes of the current file.
    pub(crate) fn update(&mut self, data: &[u8]) {
        for digester in &mut self.signed.digesters {
            digester.update(data);
        }
        if !self.active {
            return;
        }
        self.length += data.len() as u64;
        for digester in &mut self.digesters {
            digester.update(data);
        }
        if !self.kind_known && self.length > GUESS_LIMIT {
            self.abandon();
        }
    }

    /// A digest record of the current file.
    pub(crate) fn compare(&mut self, stream: Stream, recorded: &[u8]) -> Verdict {
        let Some(kind) = DigestKind::from_stream(stream.kind().0).filter(|_| self.enabled) else {
            return Verdict::Fine;
        };
        self.without = 0;
        let computed = if self.active {
            self.digesters
                .iter_mut()
                .find(|digester| digester.kind() == kind)
                .and_then(|digester| digester.finish().ok())
        } else {
            None
        };
        self.abandon();
        self.compared = computed;
        self.expect(kind);
        match (computed, DigestValue::from_bytes(kind, recorded)) {
            (Some(computed), Some(recorded)) if computed == recorded => Verdict::Fine,
            (Some(computed), _) => Verdict::Differs(kind, computed),
            (None, _) => Verdict::Fine,
        }
    }

    /// The digest of the current file that a signature is over; `None` if it is of a kind that was not expected. Files
    /// that follow have it.
    pub(crate) fn signed_digest(&mut self, kind: DigestKind) -> Option<DigestValue> {
        self.signed.finish(kind).or_else(|| self.compared.filter(|value| value.kind() == kind))
    }

    /// From now on only this kind is computed.
    fn expect(&mut self, kind: DigestKind) {
        self.kind_known = true;
        if !matches!(self.digesters.as_slice(), [only] if only.kind() == kind) {
            self.digesters.retain(|digester| digester.kind() == kind);
            if self.digesters.is_empty() {
                self.digesters.extend(Digester::new(kind));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(kind: DigestKind, data: &[u8]) -> Vec<u8> {
        let mut digester = Digester::new(kind).unwrap();
        digester.update(data);
        digester.finish().unwrap().as_bytes().to_vec()
    }

    fn stream(kind: DigestKind) -> Stream {
        Stream(kind.stream())
    }

    fn differs(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Differs(..))
    }

    #[test]
    fn every_kind_is_checked_from_the_first_file_on() {
        for kind in DigestKind::ALL {
            let mut check = DigestCheck::new(true, false);
            for (data, right) in [(&b"one"[..], true), (b"two", false), (b"", true), (b"three", true), (b"four", false)]
            {
                check.begin();
                check.update(data);
                let mut recorded = digest(kind, data);
                recorded[3] ^= u8::from(!right);
                assert_eq!(differs(&check.compare(stream(kind), &recorded)), !right, "{kind} {data:?}");
            }
            assert_eq!(check.digesters.len(), 1);
        }
    }

    #[test]
    fn the_kind_may_change_between_jobs() {
        let mut check = DigestCheck::new(true, false);
        for (kind, checked) in [
            (DigestKind::Md5, true),
            (DigestKind::Sha256, false),
            (DigestKind::Sha256, true),
            (DigestKind::Md5, false),
            (DigestKind::Md5, true),
        ] {
            check.begin();
            check.update(b"data");
            let wrong = digest(kind, b"other");
            assert_eq!(differs(&check.compare(stream(kind), &wrong)), checked);
        }
    }

    #[test]
    fn a_long_first_file_is_not_checked_and_a_wrong_length_differs() {
        let mut check = DigestCheck::new(true, false);
        check.begin();
        check.update(&vec![0; usize::try_from(GUESS_LIMIT).unwrap()]);
        check.update(b"x");
        assert!(!differs(&check.compare(Stream::MD5, b"0123456789abcdef")));
        check.begin();
        assert!(differs(&check.compare(Stream::MD5, b"short")));
    }

    #[test]
    fn a_job_without_digests_stops_computing_and_can_start_again() {
        let mut check = DigestCheck::new(true, false);
        for _ in 0..PATIENCE {
            check.begin();
            assert!(check.active);
        }
        check.begin();
        assert!(!check.active);
        assert!(!differs(&check.compare(Stream::MD5, &[0; 16])));
        check.begin();
        assert!(differs(&check.compare(Stream::MD5, &[0; 16])));
    }

    #[test]
    fn an_abandoned_file_and_a_disabled_check_say_nothing() {
        let mut check = DigestCheck::new(true, false);
        check.begin();
        check.update(b"left");
        check.abandon();
        assert!(!differs(&check.compare(Stream::MD5, &[0; 16])));
        check.begin();
        assert!(!differs(&check.compare(Stream::MD5, &digest(DigestKind::Md5, b""))));
        let mut check = DigestCheck::new(false, false);
        check.begin();
        check.update(b"left");
        assert!(!differs(&check.compare(Stream::MD5, &[0; 16])));
    }
}
