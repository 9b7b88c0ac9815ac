//! Whether it is worth trying to compress the next payload, judging by those before that looked
//! alike.

/// From this length in bytes on a payload is taken for file data; shorter ones are the records
/// round it.
const DATA: usize = 1024;
/// So many bytes of a payload are looked at, evenly spread.
const SAMPLE: usize = 512;
/// Of a sample of random bytes some 221 values are different, with a deviation of 5. Words have
/// 100 at most, programs mostly less than 180.
const NOISE: u32 = 200;
/// After so many failures in a row no more payloads are left out between two tries.
const MOST_FAILURES: u32 = 6;

/// Judges payloads each by their own kind: where files that compress alternate with those that do
/// not, the ones say nothing about the others.
#[derive(Default)]
pub(crate) struct Effort {
    noise: Record,
    data: Record,
    short: Record,
}

/// What a payload looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Data in which nearly every byte value occurs.
    Noise,
    /// Other data.
    Data,
    /// A record round the data.
    Short,
}

impl Look {
    /// Of a payload; it costs less than a microsecond.
    pub(crate) fn of(payload: &[u8]) -> Self {
        if payload.len() < DATA {
            return Self::Short;
        }
        let mut seen = [0_u64; 4];
        for byte in payload.iter().step_by(payload.len() / SAMPLE).take(SAMPLE) {
            if let Some(word) = seen.get_mut(usize::from(byte >> 6)) {
                *word |= 1 << (byte & 63);
            }
        }
        let values: u32 = seen.iter().map(|word| word.count_ones()).sum();
        if values >= NOISE { Self::Noise } else { Self::Data }
    }
}

/// How the last tries went.
#[derive(Default)]
struct Record {
    failures: u32,
    /// Payloads that are still to be left out.
    left_out: u32,
}

impl Effort {
    /// Whether a payload that looks so is to be tried. The result goes to [`Self::tried`].
    pub(crate) fn is_worth(&mut self, look: Look) -> bool {
        let record = self.record(look);
        let worth = record.left_out == 0;
        record.left_out = record.left_out.saturating_sub(1);
        worth
    }

    /// A payload of `len` bytes became `compressed` bytes; `None` if it does not compress. After
    /// one failure the next payload that looks alike is left out, after two in a row the next
    /// three, then seven, up to 63.
    pub(crate) fn tried(&mut self, look: Look, len: usize, compressed: Option<usize>) {
        let record = self.record(look);
        // A payload that gains little is sent compressed all the same, now that it is.
        if compressed.is_some_and(|compressed| compressed <= len - len / 16) {
            record.failures = 0;
        } else {
            record.failures = (record.failures + 1).min(MOST_FAILURES);
            record.left_out = (1 << record.failures) - 1;
        }
    }

    const fn record(&mut self, look: Look) -> &mut Record {
        match look {
            Look::Noise => &mut self.noise,
            Look::Data => &mut self.data,
            Look::Short => &mut self.short,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `count` payloads are tried when none compresses.
    fn tries(effort: &mut Effort, look: Look, count: usize) -> usize {
        (0..count)
            .filter(|_| {
                let worth = effort.is_worth(look);
                if worth {
                    effort.tried(look, 65_536, None);
                }
                worth
            })
            .count()
    }

    /// Random bytes, the same each time.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn noise_is_tried_less_often_but_never_given_up() {
        let mut effort = Effort::default();
        assert_eq!(tries(&mut effort, Look::Noise, 16), 4, "the 1st, 3rd, 7th and 15th");
        tries(&mut effort, Look::Noise, 1000);
        assert_eq!(tries(&mut effort, Look::Noise, 6400), 100);
        assert!(effort.is_worth(Look::Short) && effort.is_worth(Look::Data), "others are another matter");
    }

    #[test]
    fn a_gain_ends_the_pause_between_tries() {
        let mut effort = Effort::default();
        tries(&mut effort, Look::Data, 100);
        while !effort.is_worth(Look::Data) {}
        effort.tried(Look::Data, 65_536, Some(30_000));
        assert!((0..100).all(|_| {
            let worth = effort.is_worth(Look::Data);
            effort.tried(Look::Data, 65_536, Some(61_440));
            worth
        }));
        effort.tried(Look::Data, 65_536, Some(65_000));
        assert!(!effort.is_worth(Look::Data), "hardly a gain");
    }

    #[test]
    fn noise_of_any_length_looks_so_and_words_programs_and_zeros_do_not() {
        for len in [DATA, 1500, 20_000, 65_536, 1_000_003] {
            assert_eq!(Look::of(&noise(len)), Look::Noise, "{len}");
            let words: Vec<u8> = b"The quick brown fox, 42 lazy dogs. ".iter().copied().cycle().take(len).collect();
            assert_eq!(Look::of(&words), Look::Data, "{len}");
            assert_eq!(Look::of(&vec![0; len]), Look::Data, "{len}");
        }
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let blocks = program.chunks_exact(65_536);
        let (all, noisy) = (blocks.len(), blocks.filter(|block| Look::of(block) == Look::Noise).count());
        assert!(noisy * 4 < all, "{noisy} of {all} blocks of a program look like noise");
        assert_eq!(Look::of(&noise(DATA - 1)), Look::Short);
    }
}
