//! Whether it is worth trying to compress the next payload, judging by those before that looked
//! alike.

/// From this length in bytes on a payload is long.
const LONG: usize = 1024;
/// So many bytes of a payload are looked at, evenly spread.
const SAMPLE: usize = 512;
/// This part of the values that are different in as many random bytes makes noise: 199 of a sample,
/// of which random bytes have some 221, with a deviation of 5. Words have 100 at most, programs
/// mostly less than 180. Short words have about half of what short noise has.
const NOISE: f64 = 0.9;
/// After so many failures in a row no more payloads are left out between two tries.
const MOST_FAILURES: u32 = 6;

/// Judges payloads each by their own kind: where files that compress alternate with those that do
/// not, the ones say nothing about the others.
#[derive(Default)]
pub(crate) struct Effort {
    noise: Tries,
    data: Tries,
    short_noise: Tries,
    record: Tries,
}

/// What a payload looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Data in which nearly every byte value occurs.
    Noise,
    /// Other data.
    Data,
    /// Data of a small file in which hardly a byte value occurs twice.
    ShortNoise,
    /// Other data of a small file. It is tried each time: what compresses depends on its length, so
    /// that one file says little about the next, and a try costs about a microsecond.
    ShortData,
    /// A record round the data.
    Record,
}

impl Look {
    /// Of a file's data; it costs less than a microsecond.
    pub(crate) fn of_data(payload: &[u8]) -> Self {
        let step = (payload.len() / SAMPLE).max(1);
        let mut seen = [0_u64; 4];
        for byte in payload.iter().step_by(step).take(SAMPLE) {
            if let Some(word) = seen.get_mut(usize::from(byte >> 6)) {
                *word |= 1 << (byte & 63);
            }
        }
        let values: u32 = seen.iter().map(|word| word.count_ones()).sum();
        let looked_at = i32::try_from(payload.len().min(SAMPLE)).unwrap_or(i32::MAX);
        let of_random = 256.0 * (1.0 - (255.0_f64 / 256.0).powi(looked_at));
        match (payload.len() >= LONG, f64::from(values) >= NOISE * of_random) {
            (true, true) => Self::Noise,
            (true, false) => Self::Data,
            (false, true) => Self::ShortNoise,
            (false, false) => Self::ShortData,
        }
    }

    /// Of a record round the data: its header, a file's attributes, a digest.
    pub(crate) fn of_record(payload: &[u8]) -> Self {
        if payload.len() < LONG { Self::Record } else { Self::of_data(payload) }
    }
}

/// How the last tries went.
#[derive(Default)]
struct Tries {
    failures: u32,
    /// Payloads that are still to be left out.
    left_out: u32,
}

impl Effort {
    /// Whether a payload that looks so is to be tried. The result goes to [`Self::tried`].
    pub(crate) fn is_worth(&mut self, look: Look) -> bool {
        let Some(tries) = self.tries(look) else { return true };
        let worth = tries.left_out == 0;
        tries.left_out = tries.left_out.saturating_sub(1);
        worth
    }

    /// A payload of `len` bytes became `compressed` bytes; `None` if it does not compress. After
    /// one failure the next payload that looks alike is left out, after two in a row the next
    /// three, then seven, up to 63.
    pub(crate) fn tried(&mut self, look: Look, len: usize, compressed: Option<usize>) {
        let Some(tries) = self.tries(look) else { return };
        // A payload that gains little is sent compressed all the same, now that it is.
        if compressed.is_some_and(|compressed| compressed <= len - len / 16) {
            tries.failures = 0;
        } else {
            tries.failures = (tries.failures + 1).min(MOST_FAILURES);
            tries.left_out = (1 << tries.failures) - 1;
        }
    }

    const fn tries(&mut self, look: Look) -> Option<&mut Tries> {
        match look {
            Look::Noise => Some(&mut self.noise),
            Look::Data => Some(&mut self.data),
            Look::ShortNoise => Some(&mut self.short_noise),
            Look::ShortData => None,
            Look::Record => Some(&mut self.record),
        }
    }
}

#[cfg(test)]
mod tests;
