//! Whether the data that was restored is the data that was saved, by the digest records of the volume.
//!
//! The stock daemon ignores them. The digest follows the data, so its kind is known in time only from the files
//! before: until the first digest of a job has come, every kind is computed for the first bytes of each file, and a
//! job without digests soon stops computing. What a long file needs is computed by a thread of its own.

use fd_crypto::{DigestKind, DigestValue, Digester};
use fd_records::Stream;

use crate::digest_worker::DigestWorker;

/// As long as the kind is not known, all kinds are computed for this length; then only those of [`LIKELY_KINDS`].
const GUESS_LIMIT: u64 = 4 << 20;

/// What most backups have, and what costs almost nothing.
const LIKELY_KINDS: [DigestKind; 4] = [DigestKind::Md5, DigestKind::Xxh64, DigestKind::Xxh3_64, DigestKind::Xxh3_128];

/// From this length on another thread digests.
const LONG: u64 = 512 << 10;

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
    /// Has the digesters as long as a long file comes.
    worker: Option<DigestWorker>,
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
            worker: None,
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
        self.call_back();
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
        let before = self.length;
        self.length += data.len() as u64;
        if !self.kind_known && self.active && before <= GUESS_LIMIT && self.length > GUESS_LIMIT {
            self.call_back();
            self.digesters.retain(|digester| LIKELY_KINDS.contains(&digester.kind()));
        }
        let is_lent = self.worker.as_ref().is_some_and(DigestWorker::has_digesters);
        if !is_lent && !self.active && self.signed.digesters.is_empty() {
            return;
        }
        if !is_lent && self.length > LONG {
            self.lend();
        }
        if let Some(worker) = self.worker.as_mut().filter(|worker| worker.has_digesters()) {
            worker.digest(data);
            return;
        }
        let wanted = self.digesters.iter_mut().filter(|_| self.active);
        wanted.chain(&mut self.signed.digesters).for_each(|digester| digester.update(data));
    }

    /// Gives the work to the other thread.
    fn lend(&mut self) {
        if self.worker.is_none() {
            self.worker = DigestWorker::start();
        }
        if let Some(worker) = &mut self.worker {
            let wanted = if self.active { std::mem::take(&mut self.digesters) } else { Vec::new() };
            worker.lend([wanted, std::mem::take(&mut self.signed.digesters)]);
        }
    }

    /// Waits until the other thread has digested everything.
    fn call_back(&mut self) {
        let Some(worker) = self.worker.as_mut().filter(|worker| worker.has_digesters()) else { return };
        if let Some([wanted, signed]) = worker.give_back() {
            if self.active {
                self.digesters = wanted;
            }
            self.signed.digesters = signed;
        } else {
            self.worker = None;
            self.active = false;
        }
    }

    /// A digest record of the current file.
    pub(crate) fn compare(&mut self, stream: Stream, recorded: &[u8]) -> Verdict {
        let Some(kind) = DigestKind::from_stream(stream.kind().0).filter(|_| self.enabled) else {
            return Verdict::Fine;
        };
        self.without = 0;
        self.call_back();
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
        self.call_back();
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
    fn long_files_are_checked_if_their_kind_is_known_or_likely() {
        for length in [LONG, LONG + 1, GUESS_LIMIT + 70_077] {
            let data: Vec<u8> =
                (0..u32::try_from(length).unwrap()).map(|n| (n / 3).to_le_bytes()[1] ^ n.to_le_bytes()[0]).collect();
            for kind in [DigestKind::Md5, DigestKind::Sha1, DigestKind::Xxh3_128] {
                let mut check = DigestCheck::new(true, false);
                let (right, mut wrong) = (digest(kind, &data), digest(kind, &data));
                wrong[1] ^= 4;
                for (turn, recorded) in [&wrong, &right, &wrong].into_iter().enumerate() {
                    check.begin();
                    data.chunks(70_001).for_each(|piece| check.update(piece));
                    let unknown = turn == 0 && length > GUESS_LIMIT && !LIKELY_KINDS.contains(&kind);
                    let expected = recorded == &wrong && !unknown;
                    assert_eq!(differs(&check.compare(stream(kind), recorded)), expected, "{kind} {length} {turn}");
                }
            }
        }
    }

    #[test]
    fn a_long_first_file_of_another_kind_is_not_checked_and_a_wrong_length_differs() {
        let mut check = DigestCheck::new(true, false);
        check.begin();
        check.update(&vec![0; usize::try_from(GUESS_LIMIT).unwrap()]);
        check.update(b"x");
        assert!(!differs(&check.compare(Stream(DigestKind::Sha1.stream()), b"0123456789abcdef0123")));
        check.begin();
        assert!(differs(&check.compare(Stream(DigestKind::Sha1.stream()), b"short")));
    }

    #[test]
    fn signed_digests_of_long_files_are_those_of_all_their_bytes() {
        let data = vec![5; usize::try_from(LONG).unwrap() * 3 + 5];
        for enabled in [false, true] {
            let mut check = DigestCheck::new(enabled, true);
            for turn in 0..3 {
                check.begin();
                data.chunks(65_536).for_each(|piece| check.update(piece));
                if turn == 1 {
                    assert!(differs(&check.compare(Stream::MD5, &[0; 16])) == enabled);
                }
                let value = check.signed_digest(DigestKind::Sha256).unwrap();
                assert_eq!(value.as_bytes(), digest(DigestKind::Sha256, &data));
                // One that is given up leaves nothing behind.
                check.begin();
                data.chunks(65_536).for_each(|piece| check.update(piece));
                check.abandon();
            }
        }
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
