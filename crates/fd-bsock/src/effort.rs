//! Whether it is worth trying to compress the next payload, judging by those before.

/// From this length in bytes on a payload is taken for file data; shorter ones are the records
/// round it.
const DATA: usize = 1024;
/// After so many failures in a row no more payloads are left out between two tries.
const MOST_FAILURES: u32 = 6;

/// Judges data and short payloads each by their own kind.
#[derive(Default)]
pub(crate) struct Effort {
    data: Record,
    short: Record,
}

/// How the last tries went.
#[derive(Default)]
struct Record {
    failures: u32,
    /// Payloads that are still to be left out.
    left_out: u32,
}

impl Effort {
    /// Whether a payload of `len` bytes is to be tried. The result goes to [`Self::tried`].
    pub(crate) fn is_worth(&mut self, len: usize) -> bool {
        let record = self.record(len);
        let worth = record.left_out == 0;
        record.left_out = record.left_out.saturating_sub(1);
        worth
    }

    /// A payload of `len` bytes became `compressed` bytes; `None` if it does not compress. After
    /// one failure the next payload is left out, after two in a row the next three, then seven, up
    /// to 63.
    pub(crate) fn tried(&mut self, len: usize, compressed: Option<usize>) {
        let record = self.record(len);
        // A payload that gains little is sent compressed all the same, now that it is.
        if compressed.is_some_and(|compressed| compressed <= len - len / 16) {
            record.failures = 0;
        } else {
            record.failures = (record.failures + 1).min(MOST_FAILURES);
            record.left_out = (1 << record.failures) - 1;
        }
    }

    fn record(&mut self, len: usize) -> &mut Record {
        if len >= DATA { &mut self.data } else { &mut self.short }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `count` payloads are tried when none compresses.
    fn tries(effort: &mut Effort, len: usize, count: usize) -> usize {
        (0..count)
            .filter(|_| {
                let worth = effort.is_worth(len);
                if worth {
                    effort.tried(len, None);
                }
                worth
            })
            .count()
    }

    #[test]
    fn noise_is_tried_less_often_but_never_given_up() {
        let mut effort = Effort::default();
        assert_eq!(tries(&mut effort, 65_536, 16), 4, "the 1st, 3rd, 7th and 15th");
        tries(&mut effort, 65_536, 1000);
        assert_eq!(tries(&mut effort, 65_536, 6400), 100);
        assert!(effort.is_worth(100), "short ones are another matter");
    }

    #[test]
    fn a_gain_ends_the_pause_between_tries() {
        let mut effort = Effort::default();
        tries(&mut effort, 65_536, 100);
        while !effort.is_worth(65_536) {}
        effort.tried(65_536, Some(30_000));
        assert!((0..100).all(|_| {
            let worth = effort.is_worth(65_536);
            effort.tried(65_536, Some(61_440));
            worth
        }));
        effort.tried(65_536, Some(65_000));
        assert!(!effort.is_worth(65_536), "hardly a gain");
    }
}
