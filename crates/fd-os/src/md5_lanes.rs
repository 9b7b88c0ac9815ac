//! MD5 of several messages at a time, one in each lane of the processor's vector registers.
//!
//! MD5 is one long chain: each of its steps needs the one before, and a processor that could do eight of them at once
//! does one. Messages have nothing to do with each other, so sixteen of them side by side cost little more than one.
//! That pays for the small files of a backup or restore, and for large ones that are read at the same time. Not here: a
//! single message, which is as fast with OpenSSL, and who brings messages together.

/// How many messages are worked on at a time.
pub const LANES: usize = 16;

/// How many messages are worked on at a time where that is faster.
pub const FEW: usize = 4;

/// Bytes of an MD5 value.
pub const VALUE_LEN: usize = 16;

/// What a byte of the longest message in the lanes costs, in hundredths of what a byte costs alone.
const LANE_COST: usize = 240;

/// Bytes that MD5 takes at a time.
pub const BLOCK: usize = 64;

/// Blocks for each lane, one behind the other.
type Runs<'b> = [&'b [[u8; BLOCK]]; LANES];

/// The four words of each lane.
type State = [[u32; LANES]; 4];

const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The constants of the four rounds, by RFC 1321.
const ROUNDS: [[u32; 16]; 4] = [
    [
        0xd76a_a478,
        0xe8c7_b756,
        0x2420_70db,
        0xc1bd_ceee,
        0xf57c_0faf,
        0x4787_c62a,
        0xa830_4613,
        0xfd46_9501,
        0x6980_98d8,
        0x8b44_f7af,
        0xffff_5bb1,
        0x895c_d7be,
        0x6b90_1122,
        0xfd98_7193,
        0xa679_438e,
        0x49b4_0821,
    ],
    [
        0xf61e_2562,
        0xc040_b340,
        0x265e_5a51,
        0xe9b6_c7aa,
        0xd62f_105d,
        0x0244_1453,
        0xd8a1_e681,
        0xe7d3_fbc8,
        0x21e1_cde6,
        0xc337_07d6,
        0xf4d5_0d87,
        0x455a_14ed,
        0xa9e3_e905,
        0xfcef_a3f8,
        0x676f_02d9,
        0x8d2a_4c8a,
    ],
    [
        0xfffa_3942,
        0x8771_f681,
        0x6d9d_6122,
        0xfde5_380c,
        0xa4be_ea44,
        0x4bde_cfa9,
        0xf6bb_4b60,
        0xbebf_bc70,
        0x289b_7ec6,
        0xeaa1_27fa,
        0xd4ef_3085,
        0x0488_1d05,
        0xd9d4_d039,
        0xe6db_99e5,
        0x1fa2_7cf8,
        0xc4ac_5665,
    ],
    [
        0xf429_2244,
        0x432a_ff97,
        0xab94_23a7,
        0xfc93_a039,
        0x655b_59c3,
        0x8f0c_cc92,
        0xffef_f47d,
        0x8584_5dd1,
        0x6fa8_7e4f,
        0xfe2c_e6e0,
        0xa301_4314,
        0x4e08_11a1,
        0xf753_7e82,
        0xbd3a_f235,
        0x2ad7_d2bb,
        0xeb86_d391,
    ],
];

/// Whether this processor has what [`md5_each`] needs. Without, MD5 one by one is faster.
pub fn has_lanes() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let found = false;
    found
}

/// Whether there are AVX-512's instructions, for wide registers and for narrow ones.
pub fn has_wide_lanes() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512vl");
    #[cfg(not(target_arch = "x86_64"))]
    let found = false;
    found
}

/// The MD5 of each message: `done` gets the number of the message, counted from 0, and its value. The order is that in
/// which they are finished. `false`, and nothing done, if [`has_lanes`] says so.
pub fn md5_each<'m>(
    messages: impl IntoIterator<Item = &'m [u8]>,
    mut done: impl FnMut(usize, [u8; VALUE_LEN]),
) -> bool {
    if !has_lanes() {
        return false;
    }
    let mut waiting = messages.into_iter().enumerate();
    let mut state = START.map(|word| [word; LANES]);
    let mut lanes: [Lane<'m>; LANES] = std::array::from_fn(|_| Lane::default());
    loop {
        for (number, lane) in lanes.iter_mut().enumerate() {
            if lane.is_finished()
                && let Some((message, bytes)) = waiting.next()
            {
                *lane = Lane::new(message, bytes);
                set_value(&mut state, number, START);
            }
        }
        let steps = lanes.iter().map(Lane::at_hand).filter(|blocks| *blocks > 0).min();
        let Some(steps) = steps else { return true };
        let steps = steps.min(IDLE.len());
        if has_wide_lanes() && lanes.iter().filter(|lane| !lane.is_finished()).count() <= FEW {
            advance_busy(&mut state, &mut lanes, steps);
        } else {
            // A lane without work chews on zeros; nobody looks at its state.
            advance(&mut state, &lanes.each_mut().map(|lane| lane.next_blocks(steps)));
        }
        for (number, lane) in lanes.iter_mut().enumerate() {
            if lane.is_finished()
                && let Some(message) = lane.message.take()
            {
                done(message, chain(&state, number).value());
            }
        }
    }
}

/// How many of the messages, given by their lengths, the longest first, are better digested one by one: the lanes are
/// busy until the longest one in them is through. None, with [`has_wide_lanes`]: there, the last one that is left in them
/// costs no more than alone.
pub fn stand_out(lengths: impl Iterator<Item = usize> + Clone) -> usize {
    if has_wide_lanes() { 0 } else { stand_out_of_avx2(lengths) }
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

/// What a lane is at.
struct Lane<'m> {
    message: Option<usize>,
    /// Whole blocks that are still to come.
    rest: &'m [[u8; BLOCK]],
    /// The last bytes with their padding, one or two blocks.
    tail: [[u8; BLOCK]; 2],
    /// Which of them come next, and how many there are.
    tail_next: usize,
    tail_len: usize,
}

const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// For lanes without work.
static IDLE: [[u8; BLOCK]; 64] = [ZEROS; 64];

fn idle(count: usize) -> &'static [[u8; BLOCK]] {
    IDLE.get(..count).unwrap_or(&IDLE)
}

impl Default for Lane<'_> {
    fn default() -> Self {
        Self { message: None, rest: &[], tail: [ZEROS; 2], tail_next: 0, tail_len: 0 }
    }
}

impl<'m> Lane<'m> {
    fn new(message: usize, bytes: &'m [u8]) -> Self {
        let (rest, last) = bytes.as_chunks::<BLOCK>();
        let (tail, tail_len) = padded(last, bytes.len() as u64);
        Self { message: Some(message), rest, tail, tail_next: 0, tail_len }
    }

    /// How many blocks stand one behind the other.
    const fn at_hand(&self) -> usize {
        if self.rest.is_empty() { self.tail_len - self.tail_next } else { self.rest.len() }
    }

    const fn is_finished(&self) -> bool {
        self.at_hand() == 0
    }

    /// The next blocks, as many as are at hand, or zeros.
    fn next_blocks(&mut self, count: usize) -> &[[u8; BLOCK]] {
        if let Some((first, rest)) = self.rest.split_at_checked(count).filter(|_| !self.rest.is_empty()) {
            self.rest = rest;
            return first;
        }
        if self.is_finished() {
            return idle(count);
        }
        let begin = self.tail_next;
        self.tail_next += count;
        self.tail.get(begin..self.tail_next).unwrap_or_default()
    }
}

/// Takes the next blocks of those lanes that have some, which are few.
fn advance_busy(state: &mut State, lanes: &mut [Lane<'_>; LANES], steps: usize) {
    let mut busy = lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_finished());
    let mut few = [busy.next(), busy.next(), busy.next(), busy.next()];
    let numbers = few.each_ref().map(|lane| lane.as_ref().map(|(number, _)| *number));
    let mut chains = numbers.map(|number| number.map_or(Chain::default(), |number| chain(state, number)));
    let runs = few.each_mut().map(|lane| lane.as_mut().map_or(idle(steps), |(_, lane)| lane.next_blocks(steps)));
    advance_narrow(&mut chains, &runs);
    for (number, chain) in numbers.into_iter().zip(chains) {
        if let Some(number) = number {
            set_value(state, number, chain.0);
        }
    }
}

fn chain(state: &State, lane: usize) -> Chain {
    Chain(state.each_ref().map(|words| words.get(lane).copied().unwrap_or_default()))
}

/// An MD5 on its way: what is left of the whole blocks so far.
#[derive(Clone, Copy, Debug)]
pub struct Chain([u32; 4]);

impl Default for Chain {
    fn default() -> Self {
        Self(START)
    }
}

impl Chain {
    /// The MD5 of a message of `length` bytes of which `rest`, less than a block, did not go through [`advance_few`].
    pub fn finish(self, rest: &[u8], length: u64) -> [u8; VALUE_LEN] {
        let (tail, blocks) = padded(rest, length);
        let mut end = [(self, tail.get(..blocks).unwrap_or(&tail))];
        advance_few(&mut end);
        let [(end, _)] = end;
        end.value()
    }

    fn value(self) -> [u8; VALUE_LEN] {
        let mut value = [0; VALUE_LEN];
        value.as_chunks_mut().0.iter_mut().zip(self.0).for_each(|(place, word)| *place = word.to_le_bytes());
        value
    }
}

/// Takes whole blocks of some messages, up to [`FEW`] of them at a time. `false`, and nothing done, without
/// [`has_wide_lanes`].
pub fn advance_few(messages: &mut [(Chain, &[[u8; BLOCK]])]) -> bool {
    if !has_wide_lanes() {
        return false;
    }
    loop {
        let mut busy = messages.iter_mut().filter(|(_, blocks)| !blocks.is_empty());
        let mut lanes = [busy.next(), busy.next(), busy.next(), busy.next()];
        let lens = lanes.iter().flatten().map(|(_, blocks)| blocks.len());
        let Some(steps) = lens.min() else { return true };
        let mut chains = [Chain::default(); FEW];
        // A lane without a message does what the first one does; nobody looks at it.
        let mut runs = [lanes.iter().flatten().next().map_or(&[][..], |(_, blocks)| *blocks); FEW];
        for ((lane, chain), run) in lanes.iter().zip(&mut chains).zip(&mut runs) {
            if let Some((known, blocks)) = lane {
                (*chain, *run) = (*known, *blocks);
            }
        }
        runs = runs.map(|run| run.get(..steps).unwrap_or(run));
        advance_narrow(&mut chains, &runs);
        for (lane, chain) in lanes.iter_mut().zip(chains) {
            if let Some((known, blocks)) = lane {
                *known = chain;
                *blocks = blocks.get(steps..).unwrap_or_default();
            }
        }
    }
}

/// Only to be called where [`has_wide_lanes`].
fn advance_narrow(chains: &mut [Chain; FEW], runs: &[&[[u8; BLOCK]]; FEW]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the callers have seen that the processor has AVX-512.
    unsafe {
        narrow::advance(chains, runs);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _no_lanes_here = (chains, runs);
}

/// The last bytes of a message of `length` bytes with their padding: one bit, zeros, and the length in bits; and how
/// many blocks that makes.
fn padded(last: &[u8], length: u64) -> ([[u8; BLOCK]; 2], usize) {
    let mut tail = [ZEROS; 2];
    let end = last.iter().chain(&[0x80]);
    tail.as_flattened_mut().iter_mut().zip(end).for_each(|(place, byte)| *place = *byte);
    let blocks = if last.len() + 1 + 8 <= BLOCK { 1 } else { 2 };
    if let Some(place) = tail.get_mut(blocks - 1).and_then(|block| block.last_chunk_mut()) {
        *place = length.wrapping_mul(8).to_le_bytes();
    }
    (tail, blocks)
}

fn set_value(state: &mut State, lane: usize, value: [u32; 4]) {
    for (words, word) in state.iter_mut().zip(value) {
        if let Some(place) = words.get_mut(lane) {
            *place = word;
        }
    }
}

/// Takes the blocks of each lane, as many as the shortest run has. Only to be called where [`has_lanes`].
fn advance(state: &mut State, runs: &Runs<'_>) {
    #[cfg(target_arch = "x86_64")]
    if has_wide_lanes() {
        // SAFETY: the processor has AVX-512.
        unsafe { wide::advance(state, runs) }
    } else {
        // SAFETY: `md5_each`, the only caller, has seen that the processor has AVX2.
        unsafe { avx2::advance(state, runs) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _no_lanes_here = (state, runs);
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod steps;
#[cfg(target_arch = "x86_64")]
mod narrow;
#[cfg(target_arch = "x86_64")]
mod wide;

#[cfg(test)]
mod tests {
    use super::*;

    fn values(messages: &[&[u8]]) -> Vec<String> {
        let mut values = vec![String::new(); messages.len()];
        let all = md5_each(messages.iter().copied(), |number, value| {
            assert!(values[number].is_empty(), "message {number} twice");
            values[number] = value.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        });
        assert!(all);
        values
    }

    /// The examples of RFC 1321.
    #[test]
    fn known_values() {
        if !has_lanes() {
            return;
        }
        let expected = [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ];
        let messages: Vec<&[u8]> = expected.iter().map(|(message, _)| message.as_bytes()).collect();
        assert_eq!(values(&messages), expected.map(|(_, value)| value));
        assert_eq!(values(&messages[..1]), [expected[0].1]);
        assert!(values(&[]).is_empty());
    }

    /// Chains that begin and end at different times, and the borders of padding.
    #[test]
    fn chains_side_by_side_make_the_same_values() {
        if !has_wide_lanes() {
            return;
        }
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect();
        let lengths = [0, 1, 55, 56, 63, 64, 65, 128, 6400, 9999, 19_999];
        let messages: Vec<&[u8]> = lengths.map(|len| &bytes[bytes.len() - len..]).into();
        let mut chains: Vec<_> =
            messages.iter().map(|message| (Chain::default(), message.as_chunks::<BLOCK>().0)).collect();
        assert!(advance_few(&mut chains));
        let ends = chains.iter().zip(&messages).map(|((chain, left), message)| {
            assert!(left.is_empty());
            chain.finish(message.as_chunks::<BLOCK>().1, message.len() as u64)
        });
        let hex = |value: [u8; VALUE_LEN]| value.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        assert_eq!(ends.map(hex).collect::<Vec<_>>(), values(&messages));
    }

    /// Registers of every width that this processor has.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_width_makes_the_same() {
        if !has_wide_lanes() {
            return;
        }
        let byte = |n: usize| (n.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0];
        let blocks: [[[u8; BLOCK]; 3]; LANES] = std::array::from_fn(|lane| {
            std::array::from_fn(|block| std::array::from_fn(|at| byte((lane * 3 + block) * BLOCK + at)))
        });
        let runs: Runs<'_> = blocks.each_ref().map(<[[u8; BLOCK]; 3]>::as_slice);
        let start: State = std::array::from_fn(|word| std::array::from_fn(|lane| START[(word + lane) % 4]));
        let (mut avx2, mut wide) = (start, start);
        // SAFETY: who has AVX-512 has AVX2.
        unsafe { avx2::advance(&mut avx2, &runs) }
        advance(&mut wide, &runs);
        assert_eq!(avx2, wide);
        for (four, runs) in runs.as_chunks::<FEW>().0.iter().enumerate() {
            let mut chains: [Chain; FEW] = std::array::from_fn(|lane| chain(&start, FEW * four + lane));
            advance_narrow(&mut chains, runs);
            let values = chains.map(|chain| chain.0);
            assert_eq!(values, std::array::from_fn(|lane| chain(&wide, FEW * four + lane).0));
        }
    }

    /// Lengths around the borders of blocks, more messages than lanes, in every lane.
    #[test]
    fn a_value_does_not_depend_on_its_neighbours() {
        if !has_lanes() {
            return;
        }
        let bytes: Vec<u8> = (0..5000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect();
        let lengths: Vec<usize> = (0..200).chain([4096, 0, 1000, 4999, 55, 56, 63, 64, 119, 120]).collect();
        let alone: Vec<String> = lengths.iter().map(|len| values(&[&bytes[..*len]]).remove(0)).collect();
        for turn in (0..lengths.len()).step_by(23) {
            let messages: Vec<&[u8]> =
                (0..lengths.len()).map(|at| &bytes[..lengths[(at + turn) % lengths.len()]]).collect();
            let mut expected = alone.clone();
            expected.rotate_left(turn);
            assert_eq!(values(&messages), expected);
        }
    }

    #[test]
    fn a_long_message_does_not_hold_up_the_lanes() {
        let apart = |lengths: &[usize]| stand_out_of_avx2(lengths.iter().copied());
        assert_eq!(apart(&[8192; 32]), 0, "all are alike");
        assert_eq!(apart(&[200_000, 5000, 5000, 5000, 5000, 5000, 5000, 5000]), 1);
        assert_eq!(apart(&[100, 100]), 2, "two are too few");
        assert_eq!(apart(&[100_000]), 1);
        assert_eq!(apart(&[]), 0);
    }
}
