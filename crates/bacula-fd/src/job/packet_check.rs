//! `SD Packet Check`: the Storage Daemon is polled after every so many packets of data
//! (reference 04 §1.4).

use std::time::{Duration, Instant};

use crate::job::sent_records::{Sent, SentRecords};

/// Polls that follow each other faster than this, with little data in between, become half as
/// frequent. The first one follows the job's begin.
const TOO_OFTEN: Duration = Duration::from_secs(3);
const LITTLE: usize = 500 << 20;

/// Counts packets of file data; those of attributes, digests and the like don't count.
#[derive(Debug)]
pub(crate) struct PacketCheck {
    every: u64,
    left: u64,
    asked: Instant,
    sent: usize,
    records: SentRecords,
}

impl PacketCheck {
    /// Polls after each `every` packets, from `now` on; `None` for never.
    pub(crate) fn new(every: u32, now: Instant) -> Option<Self> {
        let every = u64::from(every);
        (every > 0).then(|| Self { every, left: every, asked: now, sent: 0, records: SentRecords::default() })
    }

    /// The bytes of whole frames that go before the next poll; `None` if all of them do. To be
    /// called with what remains until then.
    pub(crate) fn due(&mut self, frames: &[u8]) -> Option<usize> {
        let mut at = 0_usize;
        // Whole frames come here; the rest of anything else goes out as it is.
        while let Some((sent, consumed)) = self.records.next(frames.get(at..).unwrap_or_default()) {
            at = at.saturating_add(consumed);
            self.sent = self.sent.saturating_add(consumed);
            if matches!(sent, Sent::Packet { head, .. } if head.is_of_data()) {
                match self.left.checked_sub(1) {
                    Some(left) => self.left = left,
                    None => return Some(at),
                }
            }
        }
        None
    }

    /// The Storage Daemon was polled at `now`.
    pub(crate) fn asked(&mut self, now: Instant) {
        if now.saturating_duration_since(self.asked) < TOO_OFTEN && self.sent < LITTLE {
            self.every = self.every.saturating_mul(2);
        }
        (self.asked, self.sent, self.left) = (now, 0, self.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::sent_records::tests::record;

    #[test]
    fn with_two_a_poll_follows_the_third_packet_of_data() {
        let mut check = PacketCheck::new(2, Instant::now()).unwrap();
        let attributes = record("1 1 0", 1, 1, false);
        let data = record("1 2 5", 5, 1, false);
        let frames = [&attributes[..], &data].concat();
        // A head of five bytes, then packets of one, each with four bytes before it.
        let third = attributes.len() + 9 + 3 * 5;
        assert_eq!(check.due(&frames), Some(third));
        check.asked(Instant::now());
        // Two more packets are left of five, and the digest counts as nothing.
        assert_eq!(check.due(&frames[third..]), None);
        assert_eq!(check.due(&record("1 3 0", 9, 1, false)), None);
        assert_eq!(check.due(&data), Some(9 + 3 * 5));
        assert!(PacketCheck::new(0, Instant::now()).is_none());
    }

    #[test]
    fn polls_in_quick_succession_become_rarer_from_the_first_on() {
        let start = Instant::now();
        // Packets of a byte before the next poll.
        let packets = |check: &mut PacketCheck| {
            let frames = record("1 2 9", 9, 1, false);
            let at = check.due(&frames).unwrap();
            assert_eq!(check.due(&frames[frames.len() - 4..]), None);
            (at - 9) / 5
        };
        let mut check = PacketCheck::new(2, start).unwrap();
        check.asked(start + Duration::from_secs(4));
        assert_eq!(packets(&mut check), 3);
        check.asked(start + Duration::from_secs(5));
        assert_eq!(packets(&mut check), 5);
        check.asked(start + Duration::from_secs(60));
        assert_eq!(packets(&mut check), 5);
        let mut early = PacketCheck::new(2, start).unwrap();
        early.asked(start + Duration::from_secs(1));
        assert_eq!(packets(&mut early), 5);
    }
}
