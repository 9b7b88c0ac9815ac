//! Whether the data that was restored is the data that was saved, by the digest records of the volume.
//!
//! The stock daemon ignores them. The digest follows the data, so its kind is known in time only from the files
//! before: until the first digest of a job has come, every kind is computed for the first bytes of each file, then the
//! usual one, and if it was another, that file is read again. A job without digests soon stops computing. What a long
//! file needs is computed by a thread of its own; MD5 of small files is made later, of many at a time, and so is that of
//! long ones, unless they are very long.
//!
//! A file whose signature is checked needs no digest record: that is over the same data.

use fd_crypto::Digester;
use fd_crypto::md5_lanes::Md5Lanes;
use fd_crypto::pki::Signature;
use fd_crypto::processor::Processor;
use fd_records::{DigestKind, DigestValue, Stream};

use super::long::{Awaited, LongFiles};
use super::small::{LateDigests, Md5Value};
use super::worker::DigestWorker;
use crate::file::OutputFile;
use crate::stream::FrameMemory;

/// As long as the kind is not known, all kinds are computed for this length; then only [`USUAL_KIND`], and those of
/// [`CHEAP_KINDS`] if the file can't be read again.
const GUESS_LIMIT: u64 = 64 << 10;

/// What most backups have.
const USUAL_KIND: DigestKind = DigestKind::Md5;

/// What most signatures are over: the default of `PKI Digest`.
const USUALLY_SIGNED: DigestKind = DigestKind::Sha256;

/// What costs little.
const CHEAP_KINDS: [DigestKind; 3] = [DigestKind::Xxh64, DigestKind::Xxh3_64, DigestKind::Xxh3_128];

/// A longer file is not read again.
const AGAIN: u64 = 1 << 30;

/// From this length on another thread digests.
const LONG: u64 = 512 << 10;

/// The largest file whose digest is made later, in bytes as far as its attributes tell.
const LATE: u64 = 512 << 10;

/// The largest file that is read again for its digest together with others, in bytes. A group of files takes as long as
/// its longest one.
const MOST_LONG: u64 = 64 << 20;

/// A file that is longer, as far as its attributes tell, may have to be read again.
pub(crate) const LEAST_LONG: u64 = LATE;

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
    /// And those of long ones.
    long: LongFiles,
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
    /// It has a signature as it seems, for which it is digested while it comes.
    Spared,
    /// Nothing is done: it can be read again later.
    Left,
    /// So it was; this is what its digest record says.
    LeftAwaited(DigestValue),
}

/// What is to come of the current file's digest.
#[derive(Debug)]
pub(crate) enum Promise {
    /// Nothing.
    None,
    /// It is compared with those of other small files.
    Small,
    /// It is compared with those of other long files, once [`DigestCheck::leave`] has said that it may be read.
    Long,
    /// It has been made at once, and is another than the record says.
    Differs(DigestValue, DigestValue),
}

/// Digests of the current file for its signature: the kinds that signatures of this job were over so far; all there are
/// before the first one.
struct SignedDigests {
    digesters: Vec<Digester>,
    kind_known: bool,
    /// Whether the next file will have a signature that can be checked, as the last one had.
    are_expected: bool,
    /// Whether they have not seen all of the current file.
    are_incomplete: bool,
}

impl SignedDigests {
    fn new(wanted: bool) -> Self {
        let kinds = SIGNED_KINDS.into_iter().filter(|_| wanted);
        let digesters = kinds.filter_map(|kind| Digester::new(kind).ok()).collect();
        Self { digesters, kind_known: false, are_expected: wanted, are_incomplete: false }
    }

    /// A signature over such a digest has come; whether it is computed already.
    fn expect(&mut self, kind: DigestKind) -> bool {
        if !self.kind_known {
            self.kind_known = true;
            self.digesters.retain(|digester| digester.kind() == kind);
        }
        let is_computed = self.digesters.iter().any(|digester| digester.kind() == kind);
        if !is_computed {
            self.digesters.extend(Digester::new(kind));
        }
        is_computed
    }

    /// The next file begins.
    fn restart(&mut self) {
        self.are_incomplete = false;
        self.digesters.iter_mut().for_each(Digester::restart);
    }

    fn finish(&mut self, kind: DigestKind) -> Option<DigestValue> {
        self.digesters.iter_mut().find(|digester| digester.kind() == kind)?.finish().ok()
    }
}

impl DigestCheck {
    /// With `enabled`, digest records are compared; with `signed`, there will be digests for signatures.
    pub(crate) fn new(enabled: bool, signed: bool, processor: Processor) -> Self {
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
            late: LateDigests::new(Md5Lanes::new(processor).filter(|_| !signed)),
            long: LongFiles::new(processor),
        }
    }

    /// A file of this size begins, as far as its attributes tell. `is_readable` says whether it can be read as soon as it
    /// is written, and at little cost.
    pub(crate) fn begin(&mut self, size: i64, is_readable: impl FnOnce() -> bool) {
        self.abandon();
        self.compared = None;
        self.signed.restart();
        self.may_be_read = u64::try_from(size).is_ok_and(|size| size <= AGAIN);
        self.without = self.without.saturating_add(1);
        let is_md5 = matches!(self.digesters.as_slice(), [only] if only.kind() == DigestKind::Md5);
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let is_late = self.kind_known && is_md5 && size <= LATE && self.late.are_possible();
        // The first file, too: most backups have MD5, and for another kind it is read at once.
        let kind_of = |digesters: &[Digester], known| digesters.first().filter(|_| known).map(Digester::kind);
        let kind = if self.signed.are_expected {
            kind_of(&self.signed.digesters, self.signed.kind_known).unwrap_or(USUALLY_SIGNED)
        } else {
            kind_of(&self.digesters, self.kind_known).unwrap_or(USUAL_KIND)
        };
        let is_long = (LEAST_LONG + 1..=MOST_LONG).contains(&size) && self.long.can_take(kind, size);
        let is_wanted = self.enabled && self.without <= PATIENCE;
        self.current = match is_wanted || self.signed.are_expected {
            false => Current::Passed,
            true if is_late && is_wanted => Current::Kept,
            true if is_long && is_readable() => Current::Left,
            true if self.signed.are_expected => Current::Spared,
            true => Current::Digested,
        };
    }

    /// The current file has a signature by somebody known: its digest record is not looked at.
    pub(crate) fn spare(&mut self) {
        self.without = 0;
        self.signed.are_expected = true;
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

    /// Whether [`Self::catch_up`] has to come before the next bytes, so many, because the file will not be read later after
    /// all: it would not hold what came.
    pub(crate) fn must_catch_up(&self, bytes: usize, in_order: bool) -> bool {
        self.current == Current::Left && (!in_order || self.length.saturating_add(bytes as u64) > MOST_LONG)
    }

    /// From now on the current file is digested while it comes. `read_again` passes on what of it came so far.
    pub(crate) fn catch_up(&mut self, read_again: impl FnOnce(&mut dyn FnMut(&[u8])) -> std::io::Result<u64>) {
        let length = std::mem::take(&mut self.length);
        self.current = if self.signed.are_expected { Current::Spared } else { Current::Digested };
        if length > 0 && read_again(&mut |data| self.update(data, true)).ok() != Some(length) {
            self.abandon();
            self.signed.are_incomplete = true;
        }
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
        if matches!(self.current, Current::Left | Current::LeftAwaited(_)) {
            return;
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
        let Some(kind) = stream.digest_kind().filter(|_| self.enabled) else {
            return Verdict::Fine;
        };
        self.without = 0;
        self.signed.are_expected = false;
        if self.current == Current::Kept {
            if let (DigestKind::Md5, Ok(recorded)) = (kind, recorded.try_into()) {
                self.current = Current::Awaited(recorded);
                return Verdict::Later;
            }
            self.digest_kept();
        }
        self.call_back();
        let mut computed = None;
        if self.current == Current::Left {
            if let Some(recorded) = DigestValue::from_bytes(kind, recorded)
                && self.long.can_take(kind, self.length)
            {
                self.expect(kind);
                self.current = Current::LeftAwaited(recorded);
                return Verdict::Later;
            }
            computed = again(kind, self.length, read_again);
        } else if self.current == Current::Spared && self.may_be_read {
            computed = again(kind, self.length, read_again);
        } else if self.current == Current::Digested {
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
    /// not the same. `read_again` passes the whole file to a digester, if that has to be.
    pub(crate) fn decide(
        &mut self,
        read_again: impl FnOnce(&mut Digester) -> std::io::Result<u64>,
    ) -> Option<(DigestValue, DigestValue)> {
        let md5 = |value: Md5Value| DigestValue::from_bytes(DigestKind::Md5, &value);
        let (recorded, computed) = match self.current {
            Current::Awaited(recorded) => {
                let computed = self.late.make_now();
                self.late.forget();
                (md5(recorded), computed.and_then(md5))
            }
            Current::LeftAwaited(recorded) => (Some(recorded), again(recorded.kind(), self.length, read_again)),
            _ => return None,
        };
        self.current = Current::Passed;
        recorded.zip(computed).filter(|(recorded, computed)| recorded != computed)
    }

    /// Leaves the verdict about the current file, if one is to come, to [`Self::settle`] or [`Self::long_files`], with its
    /// name.
    pub(crate) fn promise(&mut self, name: &[u8], file: &OutputFile) -> Promise {
        match self.current {
            Current::Awaited(recorded) => {
                self.current = Current::Passed;
                self.late.promise(recorded, name);
                Promise::Small
            }
            Current::LeftAwaited(recorded) => {
                if let Ok(reader) = file.reader() {
                    self.current = Current::Passed;
                    self.long.promise(reader, self.length, recorded.kind(), Awaited::Digest(recorded), name);
                    return Promise::Long;
                }
                let differs = self.decide(|digester| file.read_again(|data| digester.update(data)));
                differs.map_or(Promise::None, |(recorded, restored)| Promise::Differs(recorded, restored))
            }
            _ => Promise::None,
        }
    }

    /// Leaves it to [`Self::long_files`] to make the digest of the current file that a signature is over, if that can be
    /// later.
    pub(crate) fn promise_signed(
        &mut self,
        kind: DigestKind,
        signature: &Signature,
        name: &[u8],
        file: &OutputFile,
    ) -> bool {
        if self.current != Current::Left || !self.long.can_take(kind, self.length) {
            return false;
        }
        let Ok(reader) = file.reader() else { return false };
        self.signed.expect(kind);
        self.current = Current::Passed;
        self.long.promise(reader, self.length, kind, Awaited::Signature(signature.clone()), name);
        true
    }

    /// The long file that was promised last is as it is to stay.
    pub(crate) fn leave(&mut self) {
        self.long.leave();
    }

    /// Whether verdicts about small files are to come.
    pub(crate) const fn has_promises(&self) -> bool {
        self.late.has_promises()
    }

    /// Whether they should come now, because what is kept for them is enough.
    pub(crate) const fn promises_are_many(&self) -> bool {
        self.late.are_many()
    }

    /// Finds out about all small files that were promised. [`LateDigests::wrong`] tells, until they are cleared, and what
    /// is known of long ones stands beside.
    pub(crate) fn settle(&mut self) -> (&LateDigests, &mut LongFiles) {
        self.late.settle();
        (&self.late, &mut self.long)
    }

    /// Forgets the small files that were promised.
    pub(crate) fn clear(&mut self) {
        self.late.clear();
    }

    /// The long files that were promised.
    pub(crate) const fn long_files(&mut self) -> &mut LongFiles {
        &mut self.long
    }

    /// The digest of the current file that a signature is over; `None` if it is of a kind that was not expected, and the
    /// file can't be read again. Files that follow have it. `read_again` passes the whole file to a digester, if that has
    /// to be.
    pub(crate) fn signed_digest(
        &mut self,
        kind: DigestKind,
        read_again: impl FnOnce(&mut Digester) -> std::io::Result<u64>,
    ) -> Option<DigestValue> {
        self.call_back();
        if self.signed.expect(kind) && !self.signed.are_incomplete && self.current != Current::Left {
            return self.signed.finish(kind);
        }
        let compared = self.compared.filter(|value| value.kind() == kind);
        if compared.is_none() && self.may_be_read { again(kind, self.length, read_again) } else { compared }
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

    /// The variants of the processor for which this holds, if there are any.
    fn variants(holds: impl Fn(&Processor) -> bool) -> Option<Vec<Processor>> {
        let all: Vec<_> = Processor::variants().filter(holds).collect();
        (!all.is_empty()).then_some(all)
    }

    fn stream(kind: DigestKind) -> Stream {
        kind.stream()
    }

    fn differs(check: &mut DigestCheck, stream: Stream, recorded: &[u8]) -> bool {
        match check.compare(stream, recorded, |_| Err(std::io::Error::other("not there"))) {
            Verdict::Fine => false,
            Verdict::Differs(..) => true,
            Verdict::Later => check.decide(|_| Ok(0)).is_some(),
        }
    }

    #[test]
    fn every_kind_is_checked_from_the_first_file_on() {
        for processor in Processor::variants() {
            for kind in DigestKind::ALL {
                let mut check = DigestCheck::new(true, false, processor);
                for (data, right) in
                    [(&b"one"[..], true), (b"two", false), (b"", true), (b"three", true), (b"four", false)]
                {
                    check.begin(0, || false);
                    check.update(data, true);
                    let mut recorded = digest(kind, data);
                    recorded[3] ^= u8::from(!right);
                    assert_eq!(differs(&mut check, stream(kind), &recorded), !right, "{kind} {data:?}");
                }
                assert_eq!(check.digesters.len(), 1);
            }
        }
    }

    #[test]
    fn the_kind_may_change_between_jobs() {
        for processor in Processor::variants() {
            let mut check = DigestCheck::new(true, false, processor);
            for (kind, checked) in [
                (DigestKind::Md5, true),
                (DigestKind::Sha256, false),
                (DigestKind::Sha256, true),
                (DigestKind::Md5, false),
                (DigestKind::Md5, true),
            ] {
                check.begin(0, || false);
                check.update(b"data", true);
                let wrong = digest(kind, b"other");
                assert_eq!(differs(&mut check, stream(kind), &wrong), checked);
            }
        }
    }

    #[test]
    fn long_files_are_checked_also_the_first_one() {
        for processor in Processor::variants() {
            for length in [GUESS_LIMIT, GUESS_LIMIT + 1, LONG, LONG + 70_077] {
                let data: Vec<u8> = (0..u32::try_from(length).unwrap())
                    .map(|n| (n / 3).to_le_bytes()[1] ^ n.to_le_bytes()[0])
                    .collect();
                for (kind, in_order) in [DigestKind::Md5, DigestKind::Sha512, DigestKind::Xxh3_128]
                    .into_iter()
                    .flat_map(|kind| [true, false].map(|in_order| (kind, in_order)))
                {
                    let mut check = DigestCheck::new(true, false, processor);
                    let (right, mut wrong) = (digest(kind, &data), digest(kind, &data));
                    wrong[1] ^= 4;
                    for (turn, recorded) in [&wrong, &right, &wrong].into_iter().enumerate() {
                        check.begin(0, || false);
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
                            Verdict::Later => check.decide(|_| Ok(0)).is_some(),
                            verdict => matches!(verdict, Verdict::Differs(..)),
                        };
                        assert_eq!(differs, expected, "{kind} {length} {turn} {in_order}");
                        let many = length > GUESS_LIMIT;
                        assert_eq!(
                            was_read,
                            turn == 0 && many && in_order && kind != USUAL_KIND,
                            "{kind} {length} {turn}"
                        );
                    }
                }
            }
        }
    }

    /// Long files that are not digested while they come, in a job of each kind.
    #[test]
    fn long_files_that_are_left_are_checked_all_the_same() {
        let length = LEAST_LONG + 70_077;
        let data: Vec<u8> = (0..u32::try_from(length).unwrap()).map(|n| (n / 5).to_le_bytes()[0]).collect();
        let takes = |processor: &Processor| LongFiles::new(*processor).can_take(DigestKind::Md5, length);
        let Some(processors) = variants(takes) else { return skip::test("needs AVX-512") };
        for processor in processors {
            for kind in DigestKind::ALL {
                let mut check = DigestCheck::new(true, false, processor);
                for (turn, is_wrong) in [true, false, true].into_iter().enumerate() {
                    check.begin(i64::try_from(length).unwrap(), || true);
                    let is_left = turn == 0 || check.long.can_take(kind, length);
                    assert_eq!(check.current == Current::Left, is_left);
                    data.chunks(65_536).for_each(|piece| {
                        assert!(!check.must_catch_up(piece.len(), true));
                        check.update(piece, true);
                    });
                    assert_eq!(check.must_catch_up(0, false), is_left);
                    let mut recorded = digest(kind, &data);
                    recorded[3] ^= u8::from(is_wrong);
                    let mut reads = 0;
                    let mut read = |digester: &mut Digester| {
                        reads += 1;
                        digester.update(&data);
                        Ok(length)
                    };
                    let differs = match check.compare(stream(kind), &recorded, &mut read) {
                        Verdict::Later => check.decide(&mut read).is_some(),
                        verdict => matches!(verdict, Verdict::Differs(..)),
                    };
                    assert_eq!(differs, is_wrong, "{kind} {turn}");
                    assert_eq!(reads, u32::from(is_left), "{kind} {turn}");
                }
            }
        }
    }

    #[test]
    fn a_long_file_that_can_not_be_left_is_caught_up_with() {
        let data = vec![3; usize::try_from(LEAST_LONG).unwrap() * 3];
        let (size, cut) = (i64::try_from(data.len()).unwrap(), 1_000_000);
        let takes =
            |processor: &Processor| LongFiles::new(*processor).can_take(DigestKind::Md5, u64::try_from(size).unwrap());
        let Some(processors) = variants(takes) else { return skip::test("needs AVX-512") };
        for processor in processors {
            for (kind, known) in [(DigestKind::Md5, false), (DigestKind::Md5, true)] {
                for (read, is_checked) in [(cut, true), (cut - 1, false)] {
                    let mut check = DigestCheck::new(true, false, processor);
                    if known {
                        check.expect(kind);
                    }
                    check.begin(size, || true);
                    check.update(&data[..cut], true);
                    check.catch_up(|take| {
                        data[..read].chunks(100_000).for_each(take);
                        Ok(read as u64)
                    });
                    check.update(&data[cut..], false);
                    assert_eq!(differs(&mut check, stream(kind), &[1; 16]), is_checked);
                    // Nothing of it is left for the next one.
                    check.begin(0, || true);
                    assert!(!differs(&mut check, stream(kind), &digest(kind, b"")));
                }
                let mut check = DigestCheck::new(true, false, processor);
                check.begin(size, || true);
                check.catch_up(|_| Err(std::io::Error::other("there is nothing to be read yet")));
                check.update(&data, false);
                assert!(!differs(&mut check, stream(kind), &digest(kind, &data)));
            }
        }
    }

    #[test]
    fn a_file_that_can_t_be_read_again_is_not_checked() {
        for processor in Processor::variants() {
            for outcome in [None, Some(GUESS_LIMIT)] {
                let mut check = DigestCheck::new(true, false, processor);
                check.begin(0, || false);
                check.update(&vec![0; usize::try_from(GUESS_LIMIT).unwrap()], true);
                check.update(b"x", true);
                let sha1 = stream(DigestKind::Sha1);
                let read = |_: &mut Digester| outcome.ok_or_else(|| std::io::Error::other("no"));
                assert!(matches!(check.compare(sha1, b"0123456789abcdef0123", read), Verdict::Fine));
                check.begin(0, || false);
                assert!(differs(&mut check, sha1, b"short"));
            }
            for size in [-1, i64::MAX] {
                let mut check = DigestCheck::new(true, false, processor);
                check.begin(size, || false);
                assert!(!check.may_be_read);
            }
        }
    }

    #[test]
    fn signed_digests_of_long_files_are_those_of_all_their_bytes() {
        for processor in Processor::variants() {
            let data = vec![5; usize::try_from(LONG).unwrap() * 3 + 5];
            for enabled in [false, true] {
                let mut check = DigestCheck::new(enabled, true, processor);
                for turn in 0..3 {
                    check.begin(0, || false);
                    data.chunks(65_536).for_each(|piece| check.update(piece, true));
                    if turn == 1 {
                        // It had no signature that counts, so its digest does.
                        let verdict = check.compare(Stream::MD5, &[0; 16], |digester| {
                            digester.update(&data);
                            Ok(data.len() as u64)
                        });
                        assert_eq!(matches!(verdict, Verdict::Differs(..)), enabled);
                    }
                    let value = check.signed_digest(DigestKind::Sha256, |_| Ok(0)).unwrap();
                    assert_eq!(value.as_bytes(), digest(DigestKind::Sha256, &data));
                    // One that is given up leaves nothing behind.
                    check.begin(0, || false);
                    data.chunks(65_536).for_each(|piece| check.update(piece, true));
                    check.abandon();
                }
            }
        }
    }

    #[test]
    fn a_job_without_digests_stops_computing_and_can_start_again() {
        for processor in Processor::variants() {
            let mut check = DigestCheck::new(true, false, processor);
            for _ in 0..PATIENCE {
                check.begin(0, || false);
                assert!(check.current == Current::Digested);
            }
            check.begin(0, || false);
            assert!(check.current == Current::Passed);
            assert!(!differs(&mut check, Stream::MD5, &[0; 16]));
            check.begin(0, || false);
            assert!(differs(&mut check, Stream::MD5, &[0; 16]));
        }
    }

    #[test]
    fn an_abandoned_file_and_a_disabled_check_say_nothing() {
        for processor in Processor::variants() {
            let mut check = DigestCheck::new(true, false, processor);
            check.begin(0, || false);
            check.update(b"left", true);
            check.abandon();
            assert!(!differs(&mut check, Stream::MD5, &[0; 16]));
            check.begin(0, || false);
            assert!(!differs(&mut check, Stream::MD5, &digest(DigestKind::Md5, b"")));
            let mut check = DigestCheck::new(false, false, processor);
            check.begin(0, || false);
            check.update(b"left", true);
            assert!(!differs(&mut check, Stream::MD5, &[0; 16]));
        }
    }

    #[test]
    fn digests_that_are_made_later_are_those_of_their_files() {
        let has_lanes = |processor: &Processor| Md5Lanes::new(*processor).is_some();
        let Some(processors) = variants(has_lanes) else { return skip::test("needs AVX2") };
        for processor in processors {
            let mut check = DigestCheck::new(true, false, processor);
            check.begin(0, || false);
            assert!(!differs(&mut check, Stream::MD5, &digest(DigestKind::Md5, b"")));
            let file = OutputFile::empty(tempfile::tempfile().unwrap().into(), true);
            // Sizes around those of blocks, one that is longer than announced, and one that stands out.
            let sizes = [0, 1, 63, 64, 65, 5000, 20_000, 600_000, 250_000, 17, 524_288, 524_289, 524_288];
            for turn in 0..4 {
                let mut promised = Vec::new();
                for (number, size) in sizes.into_iter().enumerate() {
                    let data: Vec<u8> = (0..size).map(|at: usize| (at * 7 + number).to_le_bytes()[0]).collect();
                    let is_wrong = number % 3 == turn;
                    let mut recorded = digest(DigestKind::Md5, &data);
                    recorded[15] ^= u8::from(is_wrong);
                    check.begin(0, || false);
                    if number == 5 {
                        // One that is given up leaves nothing behind.
                        check.update(b"lost", true);
                        check.begin(0, || false);
                    }
                    data.chunks(65_536).for_each(|piece| check.update(piece, true));
                    let name = number.to_string().into_bytes();
                    match check.compare(Stream::MD5, &recorded, |_| Ok(0)) {
                        Verdict::Later => {
                            assert!(matches!(check.promise(&name, &file), Promise::Small), "{size}");
                            promised.push((name, is_wrong));
                        }
                        other => {
                            assert!(size > 524_288);
                            assert_eq!(matches!(other, Verdict::Differs(..)), is_wrong);
                        }
                    }
                    assert!(matches!(check.promise(b"once more", &file), Promise::None));
                }
                assert_eq!(promised.len(), 11);
                assert!(check.has_promises());
                // In the middle of a file.
                check.begin(0, || false);
                check.update(b"one", true);
                let (small, _long) = check.settle();
                for (number, (name, is_wrong)) in promised.iter().enumerate() {
                    let wrong = small.wrong(number);
                    assert_eq!(wrong.is_some(), *is_wrong);
                    assert!(
                        wrong.is_none_or(|wrong| wrong.name == name && wrong.recorded != wrong.restored.as_bytes())
                    );
                }
                assert!(small.wrong(promised.len()).is_none());
                check.clear();
                assert!(!check.has_promises());
                check.update(b"more", true);
                assert!(!differs(&mut check, Stream::MD5, &digest(DigestKind::Md5, b"onemore")));
            }
        }
    }
}
