//! MD5 of several messages at a time, one in each lane of the processor's vector registers.
//!
//! MD5 is one long chain: each of its steps needs the one before, and a processor that could do eight of them at once
//! does one. Messages have nothing to do with each other, so sixteen of them side by side cost little more than one.
//! That pays for the small files of a backup or restore; one large file gains nothing. Not here: MD5 of a single message,
//! which OpenSSL does best.

/// How many messages are worked on at a time.
pub const LANES: usize = 16;

/// Bytes of an MD5 value.
pub const VALUE_LEN: usize = 16;

/// What a byte of the longest message in the lanes costs, in hundredths of what a byte costs alone.
const LANE_COST: usize = 240;

/// Bytes that MD5 takes at a time.
const BLOCK: usize = 64;

/// A block for each lane.
type Blocks<'b> = [&'b [u8; BLOCK]; LANES];

/// The four words of each lane.
type State = [[u32; LANES]; 4];

const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// Whether this processor has what [`md5_each`] needs. Without, MD5 one by one is faster.
pub fn has_lanes() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = std::arch::is_x86_feature_detected!("avx2");
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
        let steps = lanes.iter().map(Lane::blocks_left).filter(|left| *left > 0).min();
        let Some(steps) = steps else { return true };
        for _ in 0..steps {
            // A lane without work chews on zeros; nobody looks at its state.
            compress(&mut state, lanes.each_mut().map(Lane::next_block));
        }
        for (number, lane) in lanes.iter_mut().enumerate() {
            if lane.is_finished()
                && let Some(message) = lane.message.take()
            {
                done(message, value(&state, number));
            }
        }
    }
}

/// How many of the messages, given by their lengths, the longest first, are better digested one by one: the lanes are
/// busy until the longest one in them is through.
pub fn stand_out(lengths: impl Iterator<Item = usize> + Clone) -> usize {
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

impl Default for Lane<'_> {
    fn default() -> Self {
        Self { message: None, rest: &[], tail: [ZEROS; 2], tail_next: 0, tail_len: 0 }
    }
}

impl<'m> Lane<'m> {
    fn new(message: usize, bytes: &'m [u8]) -> Self {
        let (rest, last) = bytes.as_chunks::<BLOCK>();
        let mut tail = [ZEROS; 2];
        // One bit, zeros, and the length in bits.
        let end = last.iter().chain(&[0x80]);
        tail.as_flattened_mut().iter_mut().zip(end).for_each(|(place, byte)| *place = *byte);
        let tail_len = if last.len() + 1 + 8 <= BLOCK { 1 } else { 2 };
        let bits = (bytes.len() as u64).wrapping_mul(8);
        if let Some(place) = tail.get_mut(tail_len - 1).and_then(|block| block.last_chunk_mut()) {
            *place = bits.to_le_bytes();
        }
        Self { message: Some(message), rest, tail, tail_next: 0, tail_len }
    }

    const fn blocks_left(&self) -> usize {
        self.rest.len() + self.tail_len - self.tail_next
    }

    const fn is_finished(&self) -> bool {
        self.blocks_left() == 0
    }

    fn next_block(&mut self) -> &[u8; BLOCK] {
        if let Some((first, rest)) = self.rest.split_first() {
            self.rest = rest;
            return first;
        }
        let at = self.tail_next;
        if at < self.tail_len {
            self.tail_next += 1;
        }
        self.tail.get(at).filter(|_| at < self.tail_len).unwrap_or(&ZEROS)
    }
}

fn set_value(state: &mut State, lane: usize, value: [u32; 4]) {
    for (words, word) in state.iter_mut().zip(value) {
        if let Some(place) = words.get_mut(lane) {
            *place = word;
        }
    }
}

fn value(state: &State, lane: usize) -> [u8; VALUE_LEN] {
    let mut value = [0; VALUE_LEN];
    for (place, words) in value.as_chunks_mut().0.iter_mut().zip(state) {
        *place = words.get(lane).copied().unwrap_or_default().to_le_bytes();
    }
    value
}

/// Takes one block of each lane. Only to be called where [`has_lanes`].
fn compress(state: &mut State, blocks: Blocks<'_>) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `md5_each`, the only caller, has seen that the processor has AVX2.
    unsafe {
        avx2::compress(state, blocks);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _no_lanes_here = (state, blocks);
}

#[cfg(target_arch = "x86_64")]
mod avx2;

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
        let apart = |lengths: &[usize]| stand_out(lengths.iter().copied());
        assert_eq!(apart(&[8192; 32]), 0, "all are alike");
        assert_eq!(apart(&[200_000, 5000, 5000, 5000, 5000, 5000, 5000, 5000]), 1);
        assert_eq!(apart(&[100, 100]), 2, "two are too few");
        assert_eq!(apart(&[100_000]), 1);
        assert_eq!(apart(&[]), 0);
    }
}
