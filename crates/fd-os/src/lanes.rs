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

/// How many messages are worked on at a time.
pub const LANES: usize = 16;

/// How many messages are worked on at a time where that is faster.
pub const FEW: usize = 4;

/// How many messages are worked on at a time by [`Algorithm::advance_some`].
pub const SOME: usize = 8;

/// Bytes that a digest takes at a time.
pub const BLOCK: usize = 64;

/// What a byte of the longest message in the lanes of AVX2 costs, in hundredths of what a byte costs alone.
const LANE_COST: usize = 240;

/// Blocks for each lane, one behind the other.
type Runs<'b> = [&'b [[u8; BLOCK]]; LANES];

/// The words of each lane.
type State = [[u32; LANES]; 8];

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

/// A digest on its way: what is left of the whole blocks so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Chain([u32; 8]);

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Md5, Self::Sha256];

    /// Whether this processor has what [`Self::each`] needs. Without, one by one is faster: so it is for SHA-256 where
    /// there are instructions for it.
    pub fn has_lanes(self) -> bool {
        match self {
            Self::Md5 => has_avx2(),
            Self::Sha256 => has_avx512() && !has_sha(),
        }
    }

    /// Whether this processor has what [`Self::advance_few`] needs.
    pub fn has_few_lanes(self) -> bool {
        self.has_lanes() && has_avx512()
    }

    /// The digest of each message: `done` gets the number of the message, counted from 0, and its value. The order is
    /// that in which they are finished. `false`, and nothing done, if [`Self::has_lanes`] says so.
    pub fn each<'m>(self, messages: impl IntoIterator<Item = &'m [u8]>, mut done: impl FnMut(usize, Value)) -> bool {
        if !self.has_lanes() {
            return false;
        }
        let mut waiting = messages.into_iter().enumerate();
        let mut state = [[0; LANES]; 8];
        let mut lanes: [Lane<'m>; LANES] = std::array::from_fn(|_| Lane::default());
        loop {
            for (number, lane) in lanes.iter_mut().enumerate() {
                if lane.is_finished()
                    && let Some((message, bytes)) = waiting.next()
                {
                    *lane = Lane::new(self, message, bytes);
                    set_chain(&mut state, number, self.begin());
                }
            }
            let steps = lanes.iter().map(Lane::at_hand).filter(|blocks| *blocks > 0).min();
            let Some(steps) = steps else { return true };
            let steps = steps.min(lane::MOST_IDLE);
            if has_avx512() && lanes.iter().filter(|lane| !lane.is_finished()).count() <= FEW {
                self.advance_busy(&mut state, &mut lanes, steps);
            } else {
                // A lane without work chews on zeros; nobody looks at its state.
                self.advance(&mut state, &lanes.each_mut().map(|lane| lane.next_blocks(steps)));
            }
            for (number, lane) in lanes.iter_mut().enumerate() {
                if lane.is_finished()
                    && let Some(message) = lane.take_message()
                {
                    done(message, self.value(chain(&state, number)));
                }
            }
        }
    }

    /// How many of the messages, given by their lengths, the longest first, are better digested one by one. In AVX2
    /// registers the lanes are busy until the longest one in them is through. With AVX-512 the last one that is left
    /// costs no more than alone.
    pub fn stand_out(self, lengths: impl Iterator<Item = usize> + Clone) -> usize {
        if has_avx512() { 0 } else { stand_out_of_avx2(lengths) }
    }

    /// The beginning of a message.
    pub const fn begin(self) -> Chain {
        match self {
            Self::Md5 => Chain(MD5_START),
            Self::Sha256 => Chain(SHA256_START),
        }
    }

    /// Takes whole blocks of some messages, up to [`FEW`] of them at a time. `false`, and nothing done, without
    /// [`Self::has_few_lanes`].
    pub fn advance_few(self, messages: &mut [(Chain, &[[u8; BLOCK]])]) -> bool {
        self.has_few_lanes() && {
            while !self.advance_last(messages) && step(messages, |chains, runs| self.advance_narrow(chains, runs)) {}
            true
        }
    }

    /// The same, up to [`SOME`] of them at a time.
    pub fn advance_some(self, messages: &mut [(Chain, &[[u8; BLOCK]])]) -> bool {
        self.has_few_lanes() && {
            while messages.iter().filter(|(_, blocks)| !blocks.is_empty()).count() > FEW {
                step(messages, |chains, runs| self.advance_half(chains, runs));
            }
            self.advance_few(messages)
        }
    }

    /// Takes the blocks of the only message that has some, if there is one and its chain is better alone.
    fn advance_last(self, messages: &mut [(Chain, &[[u8; BLOCK]])]) -> bool {
        let mut busy = messages.iter_mut().filter(|(_, blocks)| !blocks.is_empty());
        match (self, busy.next(), busy.next()) {
            (Self::Sha256, Some((chain, blocks)), None) => {
                one::advance(chain, std::mem::take(blocks));
                true
            }
            _ => false,
        }
    }

    /// The digest of a message of `length` bytes of which `rest`, less than a block, did not go through
    /// [`Self::advance_few`].
    pub fn finish(self, chain: Chain, rest: &[u8], length: u64) -> Value {
        let (tail, blocks) = padded(self, rest, length);
        let mut end = [(chain, tail.get(..blocks).unwrap_or(&tail))];
        self.advance_few(&mut end);
        let [(end, _)] = end;
        self.value(end)
    }

    fn value(self, chain: Chain) -> Value {
        let (len, word_bytes): (_, fn(u32) -> [u8; 4]) = match self {
            Self::Md5 => (16, u32::to_le_bytes),
            Self::Sha256 => (32, u32::to_be_bytes),
        };
        let mut bytes = [0; 32];
        bytes.as_chunks_mut().0.iter_mut().zip(chain.0).for_each(|(place, word)| *place = word_bytes(word));
        Value { bytes, len }
    }

    /// Takes the next blocks of those lanes that have some, which are few.
    fn advance_busy(self, state: &mut State, lanes: &mut [Lane<'_>; LANES], steps: usize) {
        let mut busy = lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_finished());
        let mut few = [busy.next(), busy.next(), busy.next(), busy.next()];
        let numbers = few.each_ref().map(|lane| lane.as_ref().map(|(number, _)| *number));
        let mut chains = numbers.map(|number| number.map_or(Chain::default(), |number| chain(state, number)));
        let runs = few.each_mut().map(|lane| lane.as_mut().map_or(idle(steps), |(_, lane)| lane.next_blocks(steps)));
        match (self, &numbers, &mut chains, &runs) {
            (Self::Sha256, [_, None, ..], [chain, ..], [run, ..]) => one::advance(chain, run),
            _ => self.advance_narrow(&mut chains, &runs),
        }
        for (number, chain) in numbers.into_iter().zip(chains) {
            if let Some(number) = number {
                set_chain(state, number, chain);
            }
        }
    }

    /// Only to be called where [`has_avx512`].
    fn advance_half(self, chains: &mut [Chain; SOME], runs: &[&[[u8; BLOCK]]; SOME]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the callers have seen that the processor has AVX-512.
        unsafe {
            half::advance(self, chains, runs);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _no_lanes_here = (chains, runs);
    }

    /// Only to be called where [`has_avx512`].
    fn advance_narrow(self, chains: &mut [Chain; FEW], runs: &[&[[u8; BLOCK]]; FEW]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the callers have seen that the processor has AVX-512.
        unsafe {
            narrow::advance(self, chains, runs);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _no_lanes_here = (chains, runs);
    }

    /// Takes the blocks of each lane, as many as the shortest run has. Only to be called where [`Self::has_lanes`].
    fn advance(self, state: &mut State, runs: &Runs<'_>) {
        #[cfg(target_arch = "x86_64")]
        if has_avx512() {
            // SAFETY: the processor has AVX-512.
            unsafe { wide::advance(self, state, runs) }
        } else {
            // SAFETY: `each`, the only caller, has seen that the processor has AVX2. Without AVX-512 that is MD5.
            unsafe { avx2::advance(state, runs) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _no_lanes_here = (state, runs);
    }
}

/// Takes the next blocks of the first messages that have some, as many as all of these have. `false` if none has any.
fn step<const N: usize>(
    messages: &mut [(Chain, &[[u8; BLOCK]])],
    advance: impl FnOnce(&mut [Chain; N], &[&[[u8; BLOCK]]; N]),
) -> bool {
    let mut busy = messages.iter_mut().filter(|(_, blocks)| !blocks.is_empty());
    let mut lanes: [_; N] = std::array::from_fn(|_| busy.next());
    let lens = lanes.iter().flatten().map(|(_, blocks)| blocks.len());
    let Some(steps) = lens.min() else { return false };
    let mut chains = [Chain::default(); N];
    // A lane without a message does what the first one does; nobody looks at it.
    let mut runs = [lanes.iter().flatten().next().map_or(&[][..], |(_, blocks)| *blocks); N];
    for ((lane, chain), run) in lanes.iter().zip(&mut chains).zip(&mut runs) {
        if let Some((known, blocks)) = lane {
            (*chain, *run) = (*known, *blocks);
        }
    }
    runs = runs.map(|run| run.get(..steps).unwrap_or(run));
    advance(&mut chains, &runs);
    for (lane, chain) in lanes.iter_mut().zip(chains) {
        if let Some((known, blocks)) = lane {
            *known = chain;
            *blocks = blocks.get(steps..).unwrap_or_default();
        }
    }
    true
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let found = false;
    found
}

/// Whether there are AVX-512's instructions, for wide registers and for narrow ones.
fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512vl");
    #[cfg(not(target_arch = "x86_64"))]
    let found = false;
    found
}

/// Whether there are instructions for SHA-256 of one message.
fn has_sha() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = std::arch::is_x86_feature_detected!("sha");
    #[cfg(not(target_arch = "x86_64"))]
    let found = true;
    found
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

fn chain(state: &State, lane: usize) -> Chain {
    Chain(state.each_ref().map(|words| words.get(lane).copied().unwrap_or_default()))
}

fn set_chain(state: &mut State, lane: usize, chain: Chain) {
    for (words, word) in state.iter_mut().zip(chain.0) {
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
