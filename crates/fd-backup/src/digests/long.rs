//! Digests of long files: of several workers' files side by side, which costs hardly more than one of them.
//!
//! A worker leaves what it has read at its seat and reads on. When there is enough of it, it digests what lies at some
//! other seats as well, a lane for each. If there is too little yet, it lets the others read, and one of them digests for
//! both. It does so only for a worker that will come by, and only for a moment: not for one that waits for memory, and
//! not for one that waits for a slow file. Only where the processor has the lanes for it. Not here: small files
//! (`late.rs`).

use fd_records::{DigestKind, DigestValue};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fd_crypto::multi_buffer::{Algorithm, BLOCK, Chain, FEW, Message};
use fd_crypto::processor::Processor;

use crate::digests::ahead::Follower;
use crate::digests::chains::{Chains, algorithm, begin_chains, has_some};

/// Bytes that are left at a seat together, a multiple of [`BLOCK`].
const PORTION: usize = 128 << 10;
/// With so many portions at its seat, a worker reads no further.
const ENOUGH: usize = 4;
/// How long it waits for others who are reading. Who takes longer is not waited for until he has left something.
const PATIENCE: Duration = Duration::from_millis(10);

/// Where the workers of a job meet.
pub(crate) struct LongDigests {
    processor: Processor,
    seats: Mutex<Vec<Seat>>,
    /// Somebody has digested what he took, or will not come by soon.
    news: Condvar,
}

#[derive(Default)]
struct Seat {
    chains: Chains,
    waiting: VecDeque<Vec<u8>>,
    /// Empty ones, to be used again.
    spare: Vec<Vec<u8>>,
    /// Somebody has the chains and some portions.
    is_taken: bool,
    /// Its worker is on its way to the next portion.
    is_expected: bool,
}

/// What was taken from a seat.
struct Share {
    seat: usize,
    chains: Chains,
    portions: Vec<Vec<u8>>,
}

impl LongDigests {
    /// Seats for so many workers; `None` if one file is as good as several.
    pub(crate) fn new(workers: usize, processor: Processor) -> Option<Self> {
        let seats = (0..workers).map(|_| Seat::default()).collect();
        has_some(processor).then(|| Self { processor, seats: Mutex::new(seats), news: Condvar::new() })
    }

    /// Whether digests of this kind are made faster here, or ahead.
    pub(crate) fn suits(kind: DigestKind, processor: Processor) -> bool {
        algorithm(kind).is_some_and(|algorithm| algorithm.few_lanes(processor).is_some())
    }

    /// A worker's file begins. What may lie there is of one that was given up.
    fn begin(&self, own: usize, chains: Chains) {
        let mut seats = self.wait_for(own);
        if let Some(seat) = seats.get_mut(own) {
            seat.waiting.clear();
            seat.chains = chains;
            seat.is_expected = true;
        }
    }

    /// Leaves a portion at the seat; gives an empty one.
    fn leave(&self, own: usize, portion: Vec<u8>) -> Vec<u8> {
        let mut seats = self.lock();
        let Some(seat) = seats.get_mut(own) else { return portion };
        seat.waiting.push_back(portion);
        seat.is_expected = true;
        while seats.get(own).is_some_and(|seat| seat.is_taken || seat.waiting.len() >= ENOUGH) {
            seats = self.step(seats, own);
        }
        let spare = seats.get_mut(own).and_then(|seat| seat.spare.pop());
        drop(seats);
        spare.unwrap_or_else(|| Vec::with_capacity(PORTION))
    }

    /// Waits for others or digests.
    fn step<'a>(&'a self, seats: MutexGuard<'a, Vec<Seat>>, own: usize) -> MutexGuard<'a, Vec<Seat>> {
        let is_taken = seats.get(own).is_some_and(|seat| seat.is_taken);
        let others = || seats.iter().enumerate().filter(|(number, _)| *number != own).map(|(_, seat)| seat);
        let much = others().any(|seat| seat.lies() + 1 >= ENOUGH);
        if !is_taken && (much || !others().any(Seat::is_awaited)) {
            return self.digest(seats, own);
        }
        if is_taken {
            return self.news.wait(seats).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut seats, time) = self.news.wait_timeout(seats, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        if time.timed_out() {
            let others = seats.iter_mut().enumerate().filter(|(number, _)| *number != own);
            others.for_each(|(_, seat)| seat.is_expected = false);
        }
        seats
    }

    /// The worker waits for something that may be long in coming, or has it.
    pub(crate) fn expect(&self, own: usize, is_expected: bool) {
        if let Some(seat) = self.lock().get_mut(own) {
            // Of a file whose digests are made ahead nothing is left here.
            seat.is_expected = is_expected && seat.chains != Chains::default();
        }
        if !is_expected {
            self.news.notify_all();
        }
    }

    /// The chains, once everything that was left at the seat is digested.
    fn end(&self, own: usize) -> Chains {
        self.expect(own, false);
        loop {
            let mut seats = self.wait_for(own);
            match seats.get_mut(own) {
                Some(seat) if !seat.waiting.is_empty() => drop(self.digest(seats, own)),
                Some(seat) => return std::mem::take(&mut seat.chains),
                None => return Chains::default(),
            }
        }
    }

    /// Digests what lies at a worker's own seat and as much at a few others; alone, one portion, so that others still
    /// find some when they come.
    fn digest<'a>(&'a self, mut seats: MutexGuard<'a, Vec<Seat>>, own: usize) -> MutexGuard<'a, Vec<Seat>> {
        let others = seats.iter().enumerate().filter(|(number, seat)| *number != own && seat.lies() > 0);
        let others: Vec<usize> = others.map(|(number, _)| number).take(FEW - 1).collect();
        let most = others.iter().filter_map(|number| seats.get(*number)).map(Seat::lies).max();
        let count = most.unwrap_or(1);
        let members = [own].into_iter().chain(others);
        let mut shares: Vec<Share> =
            members.filter_map(|number| Some(seats.get_mut(number)?.take(number, count))).collect();
        drop(seats);
        digest(&mut shares);
        let mut seats = self.lock();
        for share in shares {
            if let Some(seat) = seats.get_mut(share.seat) {
                seat.put_back(share);
            }
        }
        self.news.notify_all();
        seats
    }

    fn wait_for(&self, own: usize) -> MutexGuard<'_, Vec<Seat>> {
        let is_taken = |seats: &mut Vec<Seat>| seats.get(own).is_some_and(|seat| seat.is_taken);
        self.news.wait_while(self.lock(), is_taken).unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// How many portions can be taken.
    fn lies(&self) -> usize {
        if self.is_taken { 0 } else { self.waiting.len() }
    }

    /// Whether its worker will soon leave something, or digest.
    fn is_awaited(&self) -> bool {
        self.is_expected && !self.is_taken && self.waiting.len() < ENOUGH
    }

    fn take(&mut self, seat: usize, count: usize) -> Share {
        self.is_taken = true;
        let count = count.min(self.waiting.len());
        Share { seat, chains: self.chains, portions: self.waiting.drain(..count).collect() }
    }

    fn put_back(&mut self, share: Share) {
        self.is_taken = false;
        self.chains = share.chains;
        for mut portion in share.portions {
            portion.clear();
            self.spare.push(portion);
        }
    }
}

/// Takes the portions of all shares into their chains: the first ones together, then the second ones …
fn digest(shares: &mut [Share]) {
    let rounds = shares.iter().map(|share| share.portions.len()).max().unwrap_or_default();
    for round in 0..rounds {
        let mut messages: [Option<Message<'_>>; FEW * 2] = Default::default();
        let found = shares.iter_mut().flat_map(|Share { chains, portions, .. }| {
            let blocks = portions.get(round).map_or(&[][..], |portion| portion.as_chunks().0);
            chains.iter_mut().flatten().map(move |chain| (chain, blocks))
        });
        messages.iter_mut().zip(found).for_each(|(place, message)| *place = Some(message));
        Chain::advance_few(&mut messages);
    }
}

/// The digests of one worker's long files, one file after the other.
pub(crate) struct LongDigest<'j> {
    all: &'j LongDigests,
    seat: usize,
    portion: Vec<u8>,
    length: u64,
    /// As long as the digests of the file were made ahead.
    ahead: Option<Follower<'j>>,
}

impl<'j> LongDigest<'j> {
    /// Seats are counted from 0.
    pub(crate) fn new(all: &'j LongDigests, seat: usize) -> Self {
        Self { all, seat, portion: Vec::new(), length: 0, ahead: None }
    }

    /// A file begins of which digests of these kinds are wanted; `ahead` has made them as far as it could.
    pub(crate) fn begin(&mut self, kinds: [Option<DigestKind>; 2], ahead: Option<Follower<'j>>) {
        self.ahead = ahead;
        if self.ahead.is_none() {
            self.all.begin(self.seat, begin_chains(kinds, self.all.processor));
        }
        self.portion.clear();
        self.length = 0;
    }

    /// The next block of it.
    pub(crate) fn update(&mut self, block: &[u8]) {
        self.length = self.length.wrapping_add(block.len() as u64);
        if self.ahead.as_mut().is_some_and(|ahead| ahead.passes(block)) {
            return;
        }
        self.go_on_alone();
        let mut data = block;
        while !data.is_empty() {
            let room = PORTION.saturating_sub(self.portion.len());
            let (now, later) = data.split_at_checked(room).unwrap_or((data, &[]));
            self.portion.extend_from_slice(now);
            data = later;
            if self.portion.len() >= PORTION {
                self.portion = self.all.leave(self.seat, std::mem::take(&mut self.portion));
            }
        }
    }

    /// Takes over what was digested ahead, if that was so.
    fn go_on_alone(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            self.all.begin(self.seat, ahead.chains());
        }
    }

    /// The digests of all of it.
    pub(crate) fn finish(&mut self) -> LongValues {
        self.go_on_alone();
        let chains = self.all.end(self.seat);
        let (blocks, rest) = self.portion.as_chunks::<BLOCK>();
        let mut values = LongValues::default();
        for (chain, value) in chains.into_iter().zip(&mut values.0) {
            let Some(mut chain) = chain else { continue };
            Chain::advance_few(&mut [Some((&mut chain, blocks))]);
            let kind = match chain.algorithm() {
                Algorithm::Md5 => DigestKind::Md5,
                Algorithm::Sha256 => DigestKind::Sha256,
            };
            *value = DigestValue::from_bytes(kind, chain.finish(rest, self.length).as_bytes());
        }
        values
    }
}

/// The digests of a long file.
#[derive(Clone, Copy, Default)]
pub(crate) struct LongValues([Option<DigestValue>; 2]);

impl LongValues {
    /// The one of this kind, if it was wanted and the processor has lanes for it.
    pub(crate) fn get(&self, kind: DigestKind) -> Option<DigestValue> {
        self.0.into_iter().flatten().find(|value| value.kind() == kind)
    }
}

#[cfg(test)]
mod tests;
