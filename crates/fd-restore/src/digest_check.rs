//! Whether the data that was restored is the data that was saved, by the digest records of the volume.
//!
//! The stock daemon ignores them. The digest follows the data, so its kind is known in time only from the files
//! before: until the first digest of a job has come, every kind is computed for the first bytes of each file, then the
//! usual one, and if it was another, that file is read again. A job without digests soon stops computing. What a long
//! file needs is computed by a thread of its own; MD5 of small files is made later, of many at a time.

use fd_crypto::{DigestKind, DigestValue, Digester};
use fd_records::Stream;

use crate::digest_worker::DigestWorker;
use crate::late_digests::{LateDigests, Md5Value, WrongFile};
use crate::source::FrameMemory;

/// As long as the kind is not known, all kinds are computed for this length; then only [`USUAL_KIND`], and those of
/// [`CHEAP_KINDS`] if the file can't be read again.
const GUESS_LIMIT: u64 = 64 << 10;

/// What most backups have.
const USUAL_KIND: DigestKind = DigestKind::Md5;

/// What costs little.
const CHEAP_KINDS: [DigestKind; 3] = [DigestKind::Xxh64, DigestKind::Xxh3_64, DigestKind::Xxh3_128];

/// A longer file is not read again.
const AGAIN: u64 = 1 << 30;

/// From this length on another thread digests.
const LONG: u64 = 512 << 10;

/// The largest file whose digest is made later, in bytes as far as its attributes tell.
const LATE: i64 = 512 << 10;

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
    /// That is not known yet: [`DigestCheck::decide`] and [`DigestCheck::promise`].
    Later,
}

/// Computes digests of what is restored.
pub(crate) struct DigestCheck {
    enabled: bool,
    digesters: Vec<Digester>,
    /// Bytes of the current file.
    length: u64,
    current: Current,
    /// Whether the file could be read again: it holds what came, in that order, and is not too long.
    may_be_read: bool,
    /// Whether a digest record has said which kind to compute.
    kind_known: bool,
    /// Files in a row that had no digest.
    without: u32,
    /// The digest of the current file, once its record has been compared.
    compared: Option<DigestValue>,
    signed: SignedDigests,
    /// Has the digesters as long as a long file comes.
    worker: Option<DigestWorker>,
    /// What the present record stands in, where that spares a copy.
    memory: Option<FrameMemory>,
    /// Makes those of small files.
    late: LateDigests,
}

/// What becomes of the current file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Current {
    /// It is not checked.
    Passed,
    /// It is digested while it comes.
    Digested,
    /// It is kept, to be digested later.
    Kept,
    /// So it was; this is what its digest record says.
    Awaited(Md5Value),
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
            current: Current::Passed,
            may_be_read: false,
            kind_known: false,
            without: 0,
            compared: None,
            signed: SignedDigests::new(signed),
            worker: None,
            memory: None,
            // A signature wants its digest when the file ends.
            late: LateDigests::new(!signed),
        }
    }

    /// A file of this size begins, as far as its attributes tell.
    pub(crate) fn begin(&mut self, size: i64) {
        self.abandon();
        self.compared = None;
        self.signed.digesters.iter_mut().for_each(Digester::restart);
        self.may_be_read = u64::try_from(size).is_ok_and(|size| size <= AGAIN);
        self.without = self.without.saturating_add(1);
        let is_md5 = matches!(self.digesters.as_slice(), [only] if only.kind() == DigestKind::Md5);
        let is_late = self.kind_known && is_md5 && (0..=LATE).contains(&size) && self.late.are_possible();
        self.current = match (self.enabled && self.without <= PATIENCE, is_late) {
            (false, _) => Current::Passed,
            (true, false) => Current::Digested,
            (true, true) => Current::Kept,
        };
    }

    /// The current file can't be checked any more.
    pub(crate) fn abandon(&mut self) {
        self.late.forget();
        self.call_back();
        if self.current == Current::Digested && self.length > 0 {
            for digester in &mut self.digesters {
                // Only to make it ready for the next file.
                let _value = digester.finish();
            }
        }
        self.current = Current::Passed;
        self.length = 0;
    }

    /// What comes next stands in this memory; `None` if it does not last.
    pub(crate) fn stands_in(&mut self, memory: Option<&FrameMemory>) {
        let is_lent = self.worker.as_ref().is_some_and(DigestWorker::has_digesters);
        self.memory = memory.filter(|_| is_lent).cloned();
    }

    /// The next bytes of the current file. `in_order` tells whether they come to stand behind those before, as they are.
    pub(crate) fn update(&mut self, data: &[u8], in_order: bool) {
        let before = self.length;
        self.length += data.len() as u64;
        self.may_be_read &= in_order && self.length <= AGAIN;
        if self.current == Current::Kept {
            if self.late.keep(data) {
                return;
            }
            self.digest_kept();
        }
        if !self.kind_known && self.current == Current::Digested && before <= GUESS_LIMIT && self.length > GUESS_LIMIT {
            self.call_back();
            let may_be_read = self.may_be_read;
            let is_cheap = |kind| CHEAP_KINDS.contains(&kind) && !may_be_read;
            self.digesters.retain(|digester| digester.kind() == USUAL_KIND || is_cheap(digester.kind()));
        }
        let is_lent = self.worker.as_ref().is_some_and(DigestWorker::has_digesters);
        if !is_lent && self.current == Current::Passed && self.signed.digesters.is_empty() {
            return;
        }
        if !is_lent && self.length > LONG {
            self.lend();
        }
        if let Some(worker) = self.worker.as_mut().filter(|worker| worker.has_digesters()) {
            worker.digest(data, self.memory.as_ref());
            return;
        }
        let wanted = self.digesters.iter_mut().filter(|_| self.current == Current::Digested);
        wanted.chain(&mut self.signed.digesters).for_each(|digester| digester.update(data));
    }

    /// The digest of the current file is made at once after all.
    fn digest_kept(&mut self) {
        self.current = Current::Digested;
        self.digesters.iter_mut().for_each(|digester| digester.update(self.late.current()));
        self.late.forget();
    }

    /// Gives the work to the other thread.
    fn lend(&mut self) {
        if self.worker.is_none() {
            self.worker = DigestWorker::start();
        }
        if let Some(worker) = &mut self.worker {
            let wanted =
                if self.current == Current::Digested { std::mem::take(&mut self.digesters) } else { Vec::new() };
            worker.lend([wanted, std::mem::take(&mut self.signed.digesters)]);
        }
    }

    /// Waits until the other thread has digested everything.
    fn call_back(&mut self) {
        let Some(worker) = self.worker.as_mut().filter(|worker| worker.has_digesters()) else { return };
        if let Some([wanted, signed]) = worker.give_back() {
            if self.current == Current::Digested {
                self.digesters = wanted;
            }
            self.signed.digesters = signed;
        } else {
            self.worker = None;
            self.current = Current::Passed;
        }
    }

    /// A digest record of the current file. `read_again` passes the whole file to a digester, if that has to be.
    pub(crate) fn compare(
        &mut self,
        stream: Stream,
        recorded: &[u8],
        read_again: impl FnOnce(&mut Digester) -> std::io::Result<u64>,
    ) -> Verdict {
        let Some(kind) = DigestKind::from_stream(stream.kind().0).filter(|_| self.enabled) else {
            return Verdict::Fine;
        };
        self.without = 0;
        if self.current == Current::Kept {
            if let (DigestKind::Md5, Ok(recorded)) = (kind, recorded.try_into()) {
                self.current = Current::Awaited(recorded);
                return Verdict::Later;
            }
            self.digest_kept();
        }
        self.call_back();
        let mut computed = None;
        if self.current == Current::Digested {
            let digester = self.digesters.iter_mut().find(|digester| digester.kind() == kind);
            computed = match digester {
                Some(digester) => digester.finish().ok(),
                None if self.may_be_read && !self.kind_known => again(kind, self.length, read_again),
                None => None,
            };
        }
        self.abandon();
        self.compared = computed;
        self.expect(kind);
        match (computed, DigestValue::from_bytes(kind, recorded)) {
            (Some(computed), Some(recorded)) if computed == recorded => Verdict::Fine,
            (Some(computed), _) => Verdict::Differs(kind, computed),
            (None, _) => Verdict::Fine,
        }
    }

    /// Finds out now about the current file, if that was to be later: what its record says and what it is, if they are
    /// not the same.
    pub(crate) fn decide(&mut self) -> Option<(Md5Value, DigestValue)> {
        let Current::Awaited(recorded) = self.current else { return None };
        self.current = Current::Passed;
        let computed = self.late.make_now().filter(|computed| *computed != recorded);
        self.late.forget();
        Some((recorded, DigestValue::from_bytes(DigestKind::Md5, &computed?)?))
    }

    /// Leaves the verdict about the current file to [`Self::settle`], with its name. `false` if there is none to come.
    pub(crate) fn promise(&mut self, name: &[u8]) -> bool {
        let Current::Awaited(recorded) = self.current else { return false };
        self.current = Current::Passed;
        self.late.promise(recorded, name);
        true
    }

    /// Whether verdicts are to come.
    pub(crate) const fn has_promises(&self) -> bool {
        self.late.has_promises()
    }

    /// Whether they should come now, because what is kept for them is enough.
    pub(crate) const fn promises_are_many(&self) -> bool {
        self.late.are_many()
    }

    /// Finds out about all files that were promised; [`Self::wrong`] tells, until they are cleared.
    pub(crate) fn settle(&mut self) {
        self.late.settle();
    }

    /// What is wrong with the file that was promised as the `number`th, counted from 0.
    pub(crate) fn wrong(&self, number: usize) -> Option<WrongFile<'_>> {
        self.late.wrong(number)
    }

    /// Forgets the files that were promised.
    pub(crate) fn clear(&mut self) {
        self.late.clear();
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

/// The digest of a file of this length, which is read for that. Where that fails the file is not checked.
fn again(
    kind: DigestKind,
    length: u64,
    read: impl FnOnce(&mut Digester) -> std::io::Result<u64>,
) -> Option<DigestValue> {
    let mut digester = Digester::new(kind).ok()?;
    let found = read(&mut digester).ok()?;
    digester.finish().ok().filter(|_| found == length)
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

    fn differs(check: &mut DigestCheck, stream: Stream, recorded: &[u8]) -> bool {
        match check.compare(stream, recorded, |_| Err(std::io::Error::other("not there"))) {
            Verdict::Fine => false,
            Verdict::Differs(..) => true,
            Verdict::Later => check.decide().is_some(),
        }
    }

    #[test]
    fn every_kind_is_checked_from_the_first_file_on() {
        for kind in DigestKind::ALL {
            let mut check = DigestCheck::new(true, false);
            for (data, right) in [(&b"one"[..], true), (b"two", false), (b"", true), (b"three", true), (b"four", false)]
            {
                check.begin(0);
                check.update(data, true);
                let mut recorded = digest(kind, data);
                recorded[3] ^= u8::from(!right);
                assert_eq!(differs(&mut check, stream(kind), &recorded), !right, "{kind} {data:?}");
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
            check.begin(0);
            check.update(b"data", true);
            let wrong = digest(kind, b"other");
            assert_eq!(differs(&mut check, stream(kind), &wrong), checked);
        }
    }

    #[test]
    fn long_files_are_checked_also_the_first_one() {
        for length in [GUESS_LIMIT, GUESS_LIMIT + 1, LONG, LONG + 70_077] {
            let data: Vec<u8> =
                (0..u32::try_from(length).unwrap()).map(|n| (n / 3).to_le_bytes()[1] ^ n.to_le_bytes()[0]).collect();
            for (kind, in_order) in [DigestKind::Md5, DigestKind::Sha512, DigestKind::Xxh3_128]
                .into_iter()
                .flat_map(|kind| [true, false].map(|in_order| (kind, in_order)))
            {
                let mut check = DigestCheck::new(true, false);
                let (right, mut wrong) = (digest(kind, &data), digest(kind, &data));
                wrong[1] ^= 4;
                for (turn, recorded) in [&wrong, &right, &wrong].into_iter().enumerate() {
                    check.begin(0);
                    data.chunks(70_001).for_each(|piece| check.update(piece, in_order));
                    let guessed = in_order || length <= GUESS_LIMIT;
                    let usual = kind == USUAL_KIND || CHEAP_KINDS.contains(&kind);
                    let expected = recorded == &wrong && (turn > 0 || guessed || usual);
                    let mut was_read = false;
                    let verdict = check.compare(stream(kind), recorded, |digester| {
                        was_read = true;
                        digester.update(&data);
                        Ok(length)
                    });
                    let differs = match verdict {
                        Verdict::Later => check.decide().is_some(),
                        verdict => matches!(verdict, Verdict::Differs(..)),
                    };
                    assert_eq!(differs, expected, "{kind} {length} {turn} {in_order}");
                    let many = length > GUESS_LIMIT;
                    assert_eq!(was_read, turn == 0 && many && in_order && kind != USUAL_KIND, "{kind} {length} {turn}");
                }
            }
        }
    }

    #[test]
    fn a_file_that_can_t_be_read_again_is_not_checked() {
        for outcome in [None, Some(GUESS_LIMIT)] {
            let mut check = DigestCheck::new(true, false);
            check.begin(0);
            check.update(&vec![0; usize::try_from(GUESS_LIMIT).unwrap()], true);
            check.update(b"x", true);
            let sha1 = stream(DigestKind::Sha1);
            let read = |_: &mut Digester| outcome.ok_or_else(|| std::io::Error::other("no"));
            assert!(matches!(check.compare(sha1, b"0123456789abcdef0123", read), Verdict::Fine));
            check.begin(0);
            assert!(differs(&mut check, sha1, b"short"));
        }
        for size in [-1, i64::MAX] {
            let mut check = DigestCheck::new(true, false);
            check.begin(size);
            assert!(!check.may_be_read);
        }
    }

    #[test]
    fn signed_digests_of_long_files_are_those_of_all_their_bytes() {
        let data = vec![5; usize::try_from(LONG).unwrap() * 3 + 5];
        for enabled in [false, true] {
            let mut check = DigestCheck::new(enabled, true);
            for turn in 0..3 {
                check.begin(0);
                data.chunks(65_536).for_each(|piece| check.update(piece, true));
                if turn == 1 {
                    assert!(differs(&mut check, Stream::MD5, &[0; 16]) == enabled);
                }
                let value = check.signed_digest(DigestKind::Sha256).unwrap();
                assert_eq!(value.as_bytes(), digest(DigestKind::Sha256, &data));
                // One that is given up leaves nothing behind.
                check.begin(0);
                data.chunks(65_536).for_each(|piece| check.update(piece, true));
                check.abandon();
            }
        }
    }

    #[test]
    fn a_job_without_digests_stops_computing_and_can_start_again() {
        let mut check = DigestCheck::new(true, false);
        for _ in 0..PATIENCE {
            check.begin(0);
            assert!(check.current == Current::Digested);
        }
        check.begin(0);
        assert!(check.current == Current::Passed);
        assert!(!differs(&mut check, Stream::MD5, &[0; 16]));
        check.begin(0);
        assert!(differs(&mut check, Stream::MD5, &[0; 16]));
    }

    #[test]
    fn an_abandoned_file_and_a_disabled_check_say_nothing() {
        let mut check = DigestCheck::new(true, false);
        check.begin(0);
        check.update(b"left", true);
        check.abandon();
        assert!(!differs(&mut check, Stream::MD5, &[0; 16]));
        check.begin(0);
        assert!(!differs(&mut check, Stream::MD5, &digest(DigestKind::Md5, b"")));
        let mut check = DigestCheck::new(false, false);
        check.begin(0);
        check.update(b"left", true);
        assert!(!differs(&mut check, Stream::MD5, &[0; 16]));
    }

    #[test]
    fn digests_that_are_made_later_are_those_of_their_files() {
        if !LateDigests::new(true).are_possible() {
            return;
        }
        let mut check = DigestCheck::new(true, false);
        check.begin(0);
        assert!(!differs(&mut check, Stream::MD5, &digest(DigestKind::Md5, b"")));
        // Sizes around those of blocks, one that is longer than announced, and one that stands out.
        let sizes = [0, 1, 63, 64, 65, 5000, 20_000, 600_000, 250_000, 17, 524_288, 524_289, 524_288];
        for turn in 0..4 {
            let mut promised = Vec::new();
            for (number, size) in sizes.into_iter().enumerate() {
                let data: Vec<u8> = (0..size).map(|at: usize| (at * 7 + number).to_le_bytes()[0]).collect();
                let is_wrong = number % 3 == turn;
                let mut recorded = digest(DigestKind::Md5, &data);
                recorded[15] ^= u8::from(is_wrong);
                check.begin(0);
                if number == 5 {
                    // One that is given up leaves nothing behind.
                    check.update(b"lost", true);
                    check.begin(0);
                }
                data.chunks(65_536).for_each(|piece| check.update(piece, true));
                let name = number.to_string().into_bytes();
                match check.compare(Stream::MD5, &recorded, |_| Ok(0)) {
                    Verdict::Later => {
                        assert!(check.promise(&name), "{size}");
                        promised.push((name, is_wrong));
                    }
                    other => {
                        assert!(size > 524_288);
                        assert_eq!(matches!(other, Verdict::Differs(..)), is_wrong);
                    }
                }
                assert!(!check.promise(b"once more"));
            }
            assert_eq!(promised.len(), 11);
            assert!(check.has_promises());
            // In the middle of a file.
            check.begin(0);
            check.update(b"one", true);
            check.settle();
            for (number, (name, is_wrong)) in promised.iter().enumerate() {
                let wrong = check.wrong(number);
                assert_eq!(wrong.is_some(), *is_wrong);
                assert!(wrong.is_none_or(|wrong| wrong.name == name && wrong.recorded != wrong.restored.as_bytes()));
            }
            assert!(check.wrong(promised.len()).is_none());
            check.clear();
            assert!(!check.has_promises());
            check.update(b"more", true);
            assert!(!differs(&mut check, Stream::MD5, &digest(DigestKind::Md5, b"onemore")));
        }
    }
}
