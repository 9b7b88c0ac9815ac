//! MD5 and SHA-256 of several messages at a time, one in each lane of the processor's vector registers.
//!
//! Such a digest is one long chain: each of its steps needs the one before, and a processor that could do eight of them
//! at once does one. Messages have nothing to do with each other, so sixteen of them side by side cost little more than
//! one. That pays for the small files of a backup or restore, and for large ones that are read at the same time. Not
//! here: a single message, which is as fast with OpenSSL, and who brings messages together.

mod lane;
mod numbers;
mod one;

use lane::{Lane, idle, padded};
use numbers::{MD5_ROUNDS, MD5_START, SHA256_ROUNDS, SHA256_START};

use crate::processor::Processor;

/// How many messages are worked on at a time.
pub const LANES: usize = 16;

/// How many messages are worked on at a time where that is faster.
pub const FEW: usize = 4;

/// How many messages are worked on at a time by [`Chain::advance_some`].
pub const SOME: usize = 8;

/// Bytes that a digest takes at a time.
pub const BLOCK: usize = 64;

/// What a byte of the longest message in the lanes of AVX2 costs, in hundredths of what a byte costs alone.
const LANE_COST: usize = 240;

/// Blocks for each lane, one behind the other.
type Runs<'b> = [&'b [[u8; BLOCK]]; LANES];

/// The words of each lane.
type State = [[u32; LANES]; 8];

/// The words of one message: what is left of its whole blocks so far.
type Words = [u32; 8];

/// The next blocks of a message, and its digest so far.
pub type Message<'m> = (&'m mut Chain, &'m [[u8; BLOCK]]);

/// The digests that there are lanes for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// MD5, by RFC 1321.
    Md5,
    /// SHA-256, by FIPS 180-4.
    Sha256,
}

/// A digest: 16 bytes of MD5, 32 of SHA-256.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    bytes: [u8; 32],
    len: usize,
}

impl Value {
    /// The bytes, in the usual order.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Md5, Self::Sha256];

    /// The lanes for many short messages. `None` where one by one is faster: so it is for SHA-256 where there are
    /// instructions for it.
    pub fn lanes(self, processor: Processor) -> Option<Lanes> {
        let width = width(self, processor)?;
        Some(Lanes { algorithm: self, width })
    }

    /// The lanes for a few long messages, where that is better than one by one.
    pub fn few_lanes(self, processor: Processor) -> Option<FewLanes> {
        let Lanes { algorithm, width } = self.lanes(processor)?;
        Some(FewLanes { algorithm, narrow: width.narrow()? })
    }

    const fn start(self) -> Words {
        match self {
            Self::Md5 => MD5_START,
            Self::Sha256 => SHA256_START,
        }
    }

    fn value(self, words: Words) -> Value {
        let (len, word_bytes): (_, fn(u32) -> [u8; 4]) = match self {
            Self::Md5 => (16, u32::to_le_bytes),
            Self::Sha256 => (32, u32::to_be_bytes),
        };
        let mut bytes = [0; 32];
        bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(place, word)| *place = word_bytes(word));
        Value { bytes, len }
    }
}

/// The registers of [`Lanes`]. Each is there only where [`width`] has seen that the processor has them; on processors of
/// other kinds there are none.
#[derive(Clone, Copy, Debug)]
enum Width {
    /// Those of AVX2, which know MD5 only.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Those of AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512(Narrow),
}

/// The narrower registers of AVX-512, in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Narrow {
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

#[cfg(target_arch = "x86_64")]
const fn width(algorithm: Algorithm, processor: Processor) -> Option<Width> {
    match algorithm {
        Algorithm::Sha256 if processor.has_sha() => None,
        Algorithm::Md5 | Algorithm::Sha256 if processor.has_avx512() => Some(Width::Avx512(Narrow::Avx512)),
        Algorithm::Md5 if processor.has_avx2() => Some(Width::Avx2),
        Algorithm::Md5 | Algorithm::Sha256 => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
const fn width(_: Algorithm, _: Processor) -> Option<Width> {
    None
}

impl Width {
    const fn narrow(self) -> Option<Narrow> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => None,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(narrow) => Some(narrow),
        }
    }
}

/// Lanes for many short messages of one kind of digest. Who has this can make them: [`Algorithm::lanes`] gives it only
/// where the processor has what it takes.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    algorithm: Algorithm,
    width: Width,
}

impl Lanes {
    /// The digest of each message: `done` gets the number of the message, counted from 0, and its value, once each. The
    /// order is that in which they are finished.
    pub fn each<'m>(self, messages: impl IntoIterator<Item = &'m [u8]>, mut done: impl FnMut(usize, Value)) {
        let mut waiting = messages.into_iter().enumerate();
        let mut state = [[0; LANES]; 8];
        let mut lanes: [Lane<'m>; LANES] = std::array::from_fn(|_| Lane::default());
        loop {
            for (number, lane) in lanes.iter_mut().enumerate() {
                if lane.is_finished()
                    && let Some((message, bytes)) = waiting.next()
                {
                    *lane = Lane::new(self.algorithm, message, bytes);
                    set_words(&mut state, number, self.algorithm.start());
                }
            }
            let steps = lanes.iter().map(Lane::at_hand).filter(|blocks| *blocks > 0).min();
            let Some(steps) = steps else { return };
            let steps = steps.min(lane::MOST_IDLE);
            let is_few = || lanes.iter().filter(|lane| !lane.is_finished()).count() <= FEW;
            match self.width.narrow().filter(|_| is_few()) {
                Some(narrow) => self.advance_busy(narrow, &mut state, &mut lanes, steps),
                // A lane without work chews on zeros; nobody looks at its state.
                None => self.advance(&mut state, &lanes.each_mut().map(|lane| lane.next_blocks(steps))),
            }
            for (number, lane) in lanes.iter_mut().enumerate() {
                if lane.is_finished()
                    && let Some(message) = lane.take_message()
                {
                    done(message, self.algorithm.value(words(&state, number)));
                }
            }
        }
    }

    /// How many of the messages, given by their lengths, the longest first, are better digested one by one. In AVX2
    /// registers the lanes are busy until the longest one in them is through. With AVX-512 the last one that is left
    /// costs no more than alone.
    pub fn stand_out(self, lengths: impl Iterator<Item = usize> + Clone) -> usize {
        if self.width.narrow().is_some() { 0 } else { stand_out_of_avx2(lengths) }
    }

    /// Takes the next blocks of those lanes that have some, which are few.
    fn advance_busy(self, narrow: Narrow, state: &mut State, lanes: &mut [Lane<'_>; LANES], steps: usize) {
        let mut busy = lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_finished());
        let mut few = [busy.next(), busy.next(), busy.next(), busy.next()];
        let numbers = few.each_ref().map(|lane| lane.as_ref().map(|(number, _)| *number));
        let mut chains = numbers.map(|number| number.map_or([0; 8], |number| words(state, number)));
        let runs = few.each_mut().map(|lane| lane.as_mut().map_or(idle(steps), |(_, lane)| lane.next_blocks(steps)));
        match (self.algorithm, &numbers, &mut chains, &runs) {
            (Algorithm::Sha256, [_, None, ..], [chain, ..], [run, ..]) => one::advance(chain, run),
            (algorithm, ..) => narrow.advance_four(algorithm, &mut chains, &runs),
        }
        for (number, chain) in numbers.into_iter().zip(chains) {
            if let Some(number) = number {
                set_words(state, number, chain);
            }
        }
    }

    /// Takes the blocks of each lane, as many as the shortest run has.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there are no lanes"))]
    fn advance(self, state: &mut State, runs: &Runs<'_>) {
        match self.width {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: there is this width only where the processor has AVX-512.
            Width::Avx512(_) => unsafe { wide::advance(self.algorithm, state, runs) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: there is this width only where the processor has AVX2, and only for MD5.
            Width::Avx2 => unsafe { avx2::advance(state, runs) },
        }
    }
}

/// Lanes for a few long messages, whose digests are made bit by bit. Who has this can make them:
/// [`Algorithm::few_lanes`] gives it only where the processor has what it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FewLanes {
    algorithm: Algorithm,
    narrow: Narrow,
}

impl FewLanes {
    /// Which digest they make.
    pub const fn algorithm(self) -> Algorithm {
        self.algorithm
    }

    /// The beginning of a message.
    pub const fn begin(self) -> Chain {
        Chain { lanes: self, words: self.algorithm.start() }
    }
}

/// A digest on its way: what is left of the whole blocks so far. Only [`FewLanes`] begin one, so it can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chain {
    lanes: FewLanes,
    words: Words,
}

impl Chain {
    /// Which digest it is.
    pub const fn algorithm(&self) -> Algorithm {
        self.lanes.algorithm
    }

    /// Takes the blocks of all these messages, of either digest, up to [`FEW`] of a digest at a time.
    pub fn advance_few(messages: &mut [Option<Message<'_>>]) {
        for algorithm in Algorithm::ALL {
            advance_few(algorithm, messages);
        }
    }

    /// The same, up to [`SOME`] of a digest at a time.
    pub fn advance_some(messages: &mut [Option<Message<'_>>]) {
        for algorithm in Algorithm::ALL {
            while busy(algorithm, messages).nth(FEW).is_some() {
                step(algorithm, messages, |narrow, chains, runs| narrow.advance_eight(algorithm, chains, runs));
            }
            advance_few(algorithm, messages);
        }
    }

    /// The digest of a message of `length` bytes of which `rest`, less than a block, has not been taken yet.
    pub fn finish(mut self, rest: &[u8], length: u64) -> Value {
        let algorithm = self.algorithm();
        let (tail, blocks) = padded(algorithm, rest, length);
        advance_few(algorithm, &mut [Some((&mut self, tail.get(..blocks).unwrap_or(&tail)))]);
        algorithm.value(self.words)
    }
}

impl Narrow {
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there are no lanes"))]
    fn advance_eight(self, algorithm: Algorithm, chains: &mut [Words; SOME], runs: &[&[[u8; BLOCK]]; SOME]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: there is this only where the processor has AVX-512.
            Self::Avx512 => unsafe { half::advance(algorithm, chains, runs) },
        }
    }

    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there are no lanes"))]
    fn advance_four(self, algorithm: Algorithm, chains: &mut [Words; FEW], runs: &[&[[u8; BLOCK]]; FEW]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: there is this only where the processor has AVX-512.
            Self::Avx512 => unsafe { narrow::advance(algorithm, chains, runs) },
        }
    }
}

/// The messages of this digest that have blocks.
fn busy<'a, 'm>(
    algorithm: Algorithm,
    messages: &'a mut [Option<Message<'m>>],
) -> impl Iterator<Item = &'a mut Message<'m>> {
    let messages = messages.iter_mut().flatten();
    messages.filter(move |(chain, blocks)| chain.algorithm() == algorithm && !blocks.is_empty())
}

/// See [`Chain::advance_few`]. The last chain of SHA-256 that has blocks is better alone.
fn advance_few(algorithm: Algorithm, messages: &mut [Option<Message<'_>>]) {
    loop {
        let mut busy = busy(algorithm, messages);
        match (algorithm, busy.next(), busy.next()) {
            (_, None, _) => return,
            (Algorithm::Sha256, Some((chain, blocks)), None) => {
                one::advance(&mut chain.words, std::mem::take(blocks));
                return;
            }
            _ => {}
        }
        drop(busy);
        step(algorithm, messages, |narrow, chains, runs| narrow.advance_four(algorithm, chains, runs));
    }
}

/// Takes the next blocks of the first messages of this digest that have some, as many as all of these have.
fn step<const N: usize>(
    algorithm: Algorithm,
    messages: &mut [Option<Message<'_>>],
    advance: impl FnOnce(Narrow, &mut [Words; N], &[&[[u8; BLOCK]]; N]),
) {
    let mut busy = busy(algorithm, messages);
    let mut lanes: [_; N] = std::array::from_fn(|_| busy.next());
    let lens = lanes.iter().flatten().map(|(_, blocks)| blocks.len());
    let Some(steps) = lens.min() else { return };
    let Some((first, idle)) = lanes.iter().flatten().next() else { return };
    let narrow = first.lanes.narrow;
    // A lane without a message does what the first one does; nobody looks at it.
    let mut runs = [*idle; N];
    let mut chains = [[0; 8]; N];
    for ((lane, chain), run) in lanes.iter().zip(&mut chains).zip(&mut runs) {
        if let Some((known, blocks)) = lane {
            (*chain, *run) = (known.words, *blocks);
        }
    }
    runs = runs.map(|run| run.get(..steps).unwrap_or(run));
    advance(narrow, &mut chains, &runs);
    for (lane, chain) in lanes.iter_mut().zip(chains) {
        if let Some((known, blocks)) = lane {
            known.words = chain;
            *blocks = blocks.get(steps..).unwrap_or_default();
        }
    }
}

fn stand_out_of_avx2(lengths: impl Iterator<Item = usize> + Clone) -> usize {
    let total: usize = lengths.clone().fold(0, usize::saturating_add);
    let (mut count, mut alone) = (0, 0_usize);
    let mut best = (0, usize::MAX);
    for length in lengths {
        let longest = length.max(total.saturating_sub(alone) / LANES);
        let cost = alone.saturating_add(longest.saturating_mul(LANE_COST) / 100);
        if cost < best.1 {
            best = (count, cost);
        }
        alone = alone.saturating_add(length);
        count += 1;
    }
    if alone < best.1 { count } else { best.0 }
}

fn words(state: &State, lane: usize) -> Words {
    state.each_ref().map(|words| words.get(lane).copied().unwrap_or_default())
}

fn set_words(state: &mut State, lane: usize, chain: Words) {
    for (words, word) in state.iter_mut().zip(chain) {
        if let Some(place) = words.get_mut(lane) {
            *place = word;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod md5_steps;
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod sha256_steps;
#[cfg(target_arch = "x86_64")]
mod half;
#[cfg(target_arch = "x86_64")]
mod narrow;
#[cfg(target_arch = "x86_64")]
mod wide;

#[cfg(test)]
mod tests;
