//! Digests of data that is taken while it comes.
//!
//! The data of a small file is kept, and what the volume records about it. Once there is enough,
//! all are digested together, which costs a fifth of making them one by one. Until then it is not
//! known which files are wrong, so later messages are held (see [`crate::report`]).
//!
//! A longer file is digested by a thread while the job's own thread writes: that saves no processor
//! time, but the job's thread need not wait for MD5, which takes longer than the rest of the
//! restore. Quick kinds are made at once.

use std::convert::Infallible;
use std::ops::Range;

use fd_crypto::processor::Processor;
use fd_crypto::{DigestBatch, DigestSet, Digesters};
use fd_os::sync::thread::Builder;
use fd_records::{DigestKind, DigestValue};

use super::checked::{Checked, Finding, Recorded, Ticket};
use crate::sync::{Receiver, Sender, bounded};

/// The longest file whose data is kept.
pub(super) const SMALL: u64 = 512 << 10;
/// Bytes that are handed over together.
const BLOCK: usize = 256 * 1024;
/// Blocks that wait. With the one of each thread they are the memory that this takes. They last for
/// 4 ms of MD5: so long may the job's thread be off its processor, which the Storage Daemon uses,
/// too, before the digests stand still.
const WAITING: usize = 12;

/// Data that is digested as it comes.
pub(super) struct TakenData {
    /// Small files whose digests are not made yet, and the current one while it is small.
    batch: DigestBatch<Waiting>,
    /// The names of the files that wait.
    names: Vec<u8>,
    /// The kinds of which digests of the current file are wanted.
    kinds: DigestSet,
    /// Bytes of the current file so far.
    length: u64,
    streamed: StreamedDigests,
}

struct Waiting {
    ticket: Ticket,
    name: Range<usize>,
    kind: DigestKind,
    recorded: Recorded,
}

impl TakenData {
    pub(super) fn new(processor: Processor) -> Self {
        Self {
            batch: DigestBatch::new(processor),
            names: Vec::new(),
            kinds: DigestSet::EMPTY,
            length: 0,
            streamed: StreamedDigests::default(),
        }
    }

    /// A file begins; a digest of one of these kinds is wanted. What came of the one before is
    /// dropped.
    pub(super) fn begin(&mut self, kinds: DigestSet) {
        self.batch.begin(DigestSet::EMPTY);
        self.streamed.take_back();
        (self.kinds, self.length) = (kinds, 0);
    }

    /// Other kinds are wanted of the current file. `false`: it is too late for that.
    pub(super) fn change_kinds(&mut self, kinds: DigestSet) -> bool {
        if self.is_kept() {
            self.kinds = kinds;
        }
        self.kinds == kinds
    }

    /// Whether all data of the current file is kept, so that a digest of any kind can be made.
    pub(super) const fn is_kept(&self) -> bool {
        self.length <= SMALL
    }

    /// The next bytes of the current file. Waits if the thread is late.
    pub(super) fn update(&mut self, data: &[u8]) {
        let was_kept = self.is_kept();
        self.length = self.length.saturating_add(data.len() as u64);
        if self.is_kept() {
            self.batch.push(data);
            return;
        }
        if was_kept {
            self.streamed.begin(self.kinds);
            self.streamed.update(self.batch.present());
            self.batch.begin(DigestSet::EMPTY);
        }
        self.streamed.update(data);
    }

    /// The digest of the current file, which is dropped; `None` if it can't be made.
    pub(super) fn make_now(&mut self, kind: DigestKind) -> Option<DigestValue> {
        if self.is_kept() { self.batch.end_alone(kind) } else { self.streamed.finish(kind) }
    }

    /// Adds the current file, all of which is kept, to those that wait.
    pub(super) fn add(&mut self, ticket: Ticket, kind: DigestKind, recorded: Recorded, name: &[u8]) {
        let begin = self.names.len();
        self.names.extend_from_slice(name);
        let name = begin..self.names.len();
        self.batch.end(DigestSet::EMPTY.with(kind), Waiting { ticket, name, kind, recorded });
    }

    /// Whether there are files that wait.
    pub(super) const fn has_waiting(&self) -> bool {
        self.batch.has_messages()
    }

    /// Whether there are enough for [`Self::settle`].
    pub(super) const fn has_many(&self) -> bool {
        self.batch.is_full()
    }

    /// Digests all files that wait, and passes their outcomes on.
    pub(super) fn settle(&mut self, each: &mut dyn FnMut(Checked<'_>)) {
        let names = &self.names;
        let Ok(()) = self.batch.finish(|file, values| {
            let name = names.get(file.name.clone()).unwrap_or_default();
            let finding = values.get(file.kind).map_or(Finding::None, Finding::Has);
            each(Checked { ticket: file.ticket, name, recorded: &file.recorded, finding });
            Ok::<_, Infallible>(())
        });
        self.names.clear();
    }
}

/// The digests of a long file.
#[derive(Default)]
struct StreamedDigests {
    /// Empty while the thread has them.
    digesters: Digesters,
    thread: Option<DigestThread>,
    is_lent: bool,
}

impl StreamedDigests {
    /// A file begins of which digests of these kinds are wanted.
    fn begin(&mut self, kinds: DigestSet) {
        self.take_back();
        // A kind that OpenSSL refuses is missing at the end.
        let _refused = self.digesters.begin(kinds);
        if kinds.iter().all(DigestKind::is_quick) {
            return;
        }
        if self.thread.is_none() {
            self.thread = DigestThread::start();
        }
        if let Some(thread) = &mut self.thread {
            thread.lend(std::mem::take(&mut self.digesters));
            self.is_lent = true;
        }
    }

    /// The next bytes. Waits if the thread is late.
    fn update(&mut self, data: &[u8]) {
        match self.thread.as_mut().filter(|_| self.is_lent) {
            Some(thread) => thread.digest(data),
            None => self.digesters.update(data),
        }
    }

    /// The digest of all that came; `None` if this kind was not wanted.
    fn finish(&mut self, kind: DigestKind) -> Option<DigestValue> {
        self.take_back();
        if self.digesters.kinds().contains(kind) { self.digesters.finish(kind).ok() } else { None }
    }

    /// Waits until the thread has digested everything.
    fn take_back(&mut self) {
        if std::mem::take(&mut self.is_lent) {
            // Only a panic of the thread leaves none.
            match self.thread.as_mut().and_then(DigestThread::give_back) {
                Some(digesters) => self.digesters = digesters,
                None => self.thread = None,
            }
        }
    }
}

enum Order {
    Take(Digesters),
    Digest(Vec<u8>),
    GiveBack,
}

/// The channels of the thread, which ends when this is dropped. The thread is given digesters and
/// data, and gives the digesters back.
struct DigestThread {
    orders: Sender<Order>,
    used: Receiver<Vec<u8>>,
    back: Receiver<Digesters>,
    /// Bytes that are not handed over yet.
    block: Vec<u8>,
}

impl DigestThread {
    /// Starts the thread; `None` where there can be none.
    fn start() -> Option<Self> {
        let (orders, to_do) = bounded(WAITING);
        let (empty, used) = bounded(WAITING + 2);
        let (give, back) = bounded(1);
        let work = move || work(&to_do, &empty, &give);
        Builder::new().name("digests".to_owned()).spawn(work).ok()?;
        Some(Self { orders, used, back, block: Vec::new() })
    }

    fn lend(&mut self, digesters: Digesters) {
        self.block.clear();
        self.order(Order::Take(digesters));
    }

    fn digest(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let room = BLOCK.saturating_sub(self.block.len());
            let (now, later) = data.split_at_checked(room).unwrap_or((data, &[]));
            self.block.extend_from_slice(now);
            data = later;
            if self.block.len() >= BLOCK {
                self.hand_over();
            }
        }
    }

    /// Takes the digesters back, after all data. `None` if the thread has ended.
    fn give_back(&mut self) -> Option<Digesters> {
        self.hand_over();
        self.order(Order::GiveBack);
        self.back.recv().ok()
    }

    fn hand_over(&mut self) {
        if !self.block.is_empty() {
            let next = self.used.try_recv().unwrap_or_else(|_none_yet| Vec::with_capacity(BLOCK));
            let block = std::mem::replace(&mut self.block, next);
            self.order(Order::Digest(block));
        }
    }

    fn order(&self, order: Order) {
        // A failure shows when the digesters are to come back.
        let _sent = self.orders.send(order);
    }
}

fn work(orders: &Receiver<Order>, empty: &Sender<Vec<u8>>, back: &Sender<Digesters>) {
    let mut digesters = Digesters::default();
    for order in orders {
        match order {
            Order::Take(lent) => digesters = lent,
            Order::Digest(mut block) => {
                digesters.update(&block);
                block.clear();
                // If there are enough on their way, this one is not needed.
                let _surplus = empty.try_send(block);
            }
            Order::GiveBack => {
                if back.send(std::mem::take(&mut digesters)).is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
#[cfg(feature = "models")]
mod models;

#[cfg(test)]
mod tests {
    use fd_crypto::Digester;

    use super::*;

    fn value(kind: DigestKind, data: &[u8]) -> DigestValue {
        let mut digester = Digester::new(kind).unwrap();
        digester.update(data);
        digester.finish().unwrap()
    }

    #[test]
    fn digests_are_those_of_all_bytes_in_pieces_of_any_length() {
        let data: Vec<u8> = (0..2_000_003_u32).map(|n| (n / 7).to_le_bytes()[0]).collect();
        let mut streamed = StreamedDigests::default();
        // The second set is made without the thread.
        let sets = [[DigestKind::Sha1, DigestKind::Md5], [DigestKind::Xxh3_128, DigestKind::Xxh64]];
        let whole = [1000, BLOCK - 1, BLOCK, BLOCK + 1, data.len()].map(|piece| (data.len(), piece));
        for (kinds, (length, piece)) in
            sets.into_iter().flat_map(|kinds| whole.into_iter().chain([(70_000, 1000)]).map(move |case| (kinds, case)))
        {
            streamed.begin(kinds.into_iter().collect());
            data[..length].chunks(piece).for_each(|piece| streamed.update(piece));
            for kind in kinds {
                assert_eq!(streamed.finish(kind), Some(value(kind, &data[..length])), "{length} in pieces of {piece}");
            }
            assert_eq!(streamed.finish(DigestKind::Sha512), None);
        }
    }

    /// As MD5 under a FIPS policy: in a process whose OpenSSL takes nothing but a provider that is
    /// not there.
    #[test]
    fn a_kind_that_openssl_refuses_costs_no_other() {
        const TEST: &str = "digests::taken::tests::a_kind_that_openssl_refuses_costs_no_other";
        const INSIDE: &str = "A_TEST_WHERE_OPENSSL_REFUSES";
        if std::env::var_os(INSIDE).is_some() {
            let mut streamed = StreamedDigests::default();
            streamed.begin([DigestKind::Md5, DigestKind::Xxh64].into_iter().collect());
            streamed.update(b"data");
            assert_eq!(streamed.finish(DigestKind::Xxh64), Some(value(DigestKind::Xxh64, b"data")));
            assert_eq!(streamed.finish(DigestKind::Md5), None);
        } else {
            let policy = tempfile::NamedTempFile::new().unwrap();
            let lines = "openssl_conf = init\n[init]\nalg_section = all\n[all]\ndefault_properties = fips=yes\n";
            std::fs::write(policy.path(), lines).unwrap();
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            let done = command.args(["--exact", TEST]).env(INSIDE, "").env("OPENSSL_CONF", policy.path()).output();
            let printed = String::from_utf8_lossy(&done.unwrap().stdout).into_owned();
            assert!(printed.contains("1 passed"), "{printed}");
        }
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing_for_the_next_one() {
        let data = vec![7; 1_000_000];
        let mut streamed = StreamedDigests::default();
        for kinds in [&[DigestKind::Md5][..], &[DigestKind::Md5, DigestKind::Sha256], &[DigestKind::Sha256]] {
            streamed.begin(kinds.iter().copied().collect());
            data.chunks(65_536).for_each(|piece| streamed.update(piece));
            streamed.begin(kinds.iter().copied().collect());
            assert_eq!(streamed.finish(kinds[0]), Some(value(kinds[0], b"")));
        }
    }
}
