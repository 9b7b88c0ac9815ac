//! A thread that digests long files while the job's own thread writes them.
//!
//! It is lent digesters, gets the data, and gives the digesters back. Data in memory that can be held is not copied.
//! Not here: which digests are wanted.

use std::ops::Range;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use fd_crypto::Digester;

use crate::stream::FrameMemory;

/// Bytes that are handed over together.
const BLOCK: usize = 256 * 1024;
/// Smaller pieces are copied, so that what is held is what is digested, and not much more.
const LEAST_HELD: usize = 8 * 1024;
/// Blocks that wait. With the one in each hand they are what the worker's memory is.
const WAITING: usize = 2;

/// The digesters that a file needs: those of its digest record and those of its signature.
pub(crate) type Digesters = [Vec<Digester>; 2];

enum Order {
    Take(Digesters),
    Digest(Vec<u8>),
    Look(Vec<Held>),
    GiveBack,
}

/// Data in memory that is held for it.
struct Held {
    memory: FrameMemory,
    place: Range<usize>,
}

impl Held {
    /// `None` if the data is not in this memory.
    fn new(memory: &FrameMemory, data: &[u8]) -> Option<Self> {
        let whole = memory.as_ref().as_ref();
        let begin = data.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        let place = begin..begin.checked_add(data.len())?;
        whole.get(place.clone())?;
        Some(Self { memory: FrameMemory::clone(memory), place })
    }

    fn data(&self) -> &[u8] {
        self.memory.as_ref().as_ref().get(self.place.clone()).unwrap_or_default()
    }
}

/// The way to the thread, which ends when this is dropped.
pub(crate) struct DigestWorker {
    orders: Sender<Order>,
    used: Receiver<Vec<u8>>,
    back: Receiver<Digesters>,
    /// Bytes that are not handed over yet.
    block: Vec<u8>,
    held: Vec<Held>,
    /// Bytes in `held`.
    held_bytes: usize,
    has_digesters: bool,
}

impl DigestWorker {
    /// Starts the thread; `None` where there can be none.
    pub(crate) fn start() -> Option<Self> {
        let (orders, to_do) = bounded(WAITING);
        let (empty, used) = bounded(WAITING + 2);
        let (give, back) = bounded(1);
        let work = move || work(&to_do, &empty, &give);
        thread::Builder::new().name("digests".to_owned()).spawn(work).ok()?;
        Some(Self { orders, used, back, block: Vec::new(), held: Vec::new(), held_bytes: 0, has_digesters: false })
    }

    /// Lends digesters. What [`Self::digest`] gets from now on is for them.
    pub(crate) fn lend(&mut self, digesters: Digesters) {
        self.block.clear();
        self.held.clear();
        self.held_bytes = 0;
        self.has_digesters = true;
        self.order(Order::Take(digesters));
    }

    /// Whether digesters are lent.
    pub(crate) const fn has_digesters(&self) -> bool {
        self.has_digesters
    }

    /// The next bytes, and what they stand in if that can be held. Waits if the thread is behind.
    pub(crate) fn digest(&mut self, mut data: &[u8], memory: Option<&FrameMemory>) {
        let memory = memory.filter(|_| data.len() >= LEAST_HELD);
        if let Some(held) = memory.and_then(|memory| Held::new(memory, data)) {
            if !self.block.is_empty() {
                self.hand_over();
            }
            self.held.push(held);
            self.held_bytes = self.held_bytes.saturating_add(data.len());
            if self.held_bytes >= BLOCK {
                self.hand_over();
            }
            return;
        }
        if !self.held.is_empty() {
            self.hand_over();
        }
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

    /// Takes the digesters back, once they have seen everything. `None` if the thread is gone, which only a panic of it
    /// can do.
    pub(crate) fn give_back(&mut self) -> Option<Digesters> {
        self.hand_over();
        self.has_digesters = false;
        self.order(Order::GiveBack);
        self.back.recv().ok()
    }

    /// One of the two is empty.
    fn hand_over(&mut self) {
        if !self.held.is_empty() {
            self.held_bytes = 0;
            let held = std::mem::take(&mut self.held);
            self.order(Order::Look(held));
        }
        if !self.block.is_empty() {
            let next = self.used.try_recv().unwrap_or_else(|_none_yet| Vec::with_capacity(BLOCK));
            let block = std::mem::replace(&mut self.block, next);
            self.order(Order::Digest(block));
        }
    }

    fn order(&self, order: Order) {
        // Whether the thread is still there shows when the digesters are to come back.
        let _sent = self.orders.send(order);
    }
}

fn work(orders: &Receiver<Order>, empty: &Sender<Vec<u8>>, back: &Sender<Digesters>) {
    let mut digesters = Digesters::default();
    for order in orders {
        match order {
            Order::Take(lent) => digesters = lent,
            Order::Digest(mut block) => {
                for digester in digesters.iter_mut().flatten() {
                    digester.update(&block);
                }
                block.clear();
                // With enough of them on their way this one is not needed.
                let _surplus = empty.try_send(block);
            }
            Order::Look(held) => {
                for held in held {
                    digesters.iter_mut().flatten().for_each(|digester| digester.update(held.data()));
                }
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
mod tests {
    use fd_records::DigestKind;

    use super::*;

    #[test]
    fn digests_are_those_of_all_bytes_whatever_their_pieces() {
        let data: Vec<u8> = (0..2_000_003_u32).map(|n| (n / 7).to_le_bytes()[0]).collect();
        let mut expected = Digester::new(DigestKind::Sha1).unwrap();
        expected.update(&data);
        let expected = expected.finish().unwrap();
        let mut worker = DigestWorker::start().unwrap();
        let digester = || Digester::new(DigestKind::Sha1).unwrap();
        let mut lent = [vec![digester()], vec![digester()]];
        for piece in [1000, BLOCK - 1, BLOCK, BLOCK + 1, data.len()] {
            worker.lend(lent);
            data.chunks(piece).for_each(|piece| worker.digest(piece, None));
            lent = worker.give_back().unwrap();
            for digester in lent.iter_mut().flatten() {
                assert_eq!(digester.finish().unwrap(), expected, "pieces of {piece}");
            }
        }
        // Some of it in memory that is held, some not, some too short for that.
        let memory: FrameMemory = std::sync::Arc::new(data.clone());
        let held = memory.as_ref().as_ref();
        for piece in [LEAST_HELD - 1, LEAST_HELD, 100_000, BLOCK, data.len()] {
            worker.lend(lent);
            for (number, (piece, same)) in held.chunks(piece).zip(data.chunks(piece)).enumerate() {
                let piece = if number % 3 == 2 { same } else { piece };
                worker.digest(piece, Some(&memory).filter(|_| number % 7 < 5));
            }
            lent = worker.give_back().unwrap();
            for digester in lent.iter_mut().flatten() {
                assert_eq!(digester.finish().unwrap(), expected, "pieces of {piece}");
            }
            assert_eq!(std::sync::Arc::strong_count(&memory), 1, "it is let go");
        }
        // Nothing is left over for the next file.
        worker.lend(lent);
        let [first, _second] = worker.give_back().unwrap();
        let nothing = digester().finish().unwrap();
        assert_eq!(first.into_iter().next().unwrap().finish().unwrap(), nothing);
    }
}
