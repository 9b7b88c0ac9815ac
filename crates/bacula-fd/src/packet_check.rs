//! `SD Packet Check`: every so many packets the Storage Daemon is asked whether it still follows (reference 01 §17).

use std::time::{Duration, Instant};

use fd_bsock::{Parsed, parse};

/// Questions that follow each other faster than this, with little in between, become half as frequent.
const TOO_OFTEN: Duration = Duration::from_secs(3);
const LITTLE: usize = 500 << 20;

/// Counts packets.
#[derive(Debug)]
pub(crate) struct PacketCheck {
    every: u64,
    left: u64,
    asked: Option<Instant>,
    sent: usize,
}

impl PacketCheck {
    /// Asks after each `every` packets; `None` for never.
    pub(crate) fn new(every: u32) -> Option<Self> {
        let every = u64::from(every);
        (every > 0).then_some(Self { every, left: every, asked: None, sent: 0 })
    }

    /// The bytes of whole frames that go before the next question; `None` if all of them do. To be called with what
    /// remains until then.
    pub(crate) fn due(&mut self, frames: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = frames.get(at..).filter(|rest| !rest.is_empty()) {
            let (packet, consumed) = match parse(rest) {
                Ok(Parsed::Data { consumed, .. }) => (true, consumed),
                Ok(Parsed::Empty { consumed } | Parsed::Signal { consumed, .. }) => (false, consumed),
                // Whole frames come here; the rest of anything else goes out as it is.
                Ok(Parsed::Need(_)) | Err(_) => return None,
            };
            at = at.saturating_add(consumed);
            self.sent = self.sent.saturating_add(consumed);
            if packet {
                match self.left.checked_sub(1) {
                    Some(left) => self.left = left,
                    None => return Some(at),
                }
            }
        }
        None
    }

    /// The Storage Daemon was asked at `now`.
    pub(crate) fn asked(&mut self, now: Instant) {
        let often = self.asked.is_some_and(|asked| now.saturating_duration_since(asked) < TOO_OFTEN);
        if often && self.sent < LITTLE {
            self.every = self.every.saturating_mul(2);
        }
        (self.asked, self.sent, self.left) = (Some(now), 0, self.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of one byte of payload.
    fn frames(count: usize) -> Vec<u8> {
        [0, 0, 0, 1, b'x'].repeat(count)
    }

    #[test]
    fn with_two_the_third_packet_is_followed_by_a_question() {
        let mut check = PacketCheck::new(2).unwrap();
        assert_eq!(check.due(&frames(2)), None);
        let with_signal = [&[0xff, 0xff, 0xff, 0xff][..], &frames(5)].concat();
        assert_eq!(check.due(&with_signal), Some(9));
        check.asked(Instant::now());
        assert_eq!(check.due(&frames(4)), Some(15));
        assert!(PacketCheck::new(0).is_none());
    }

    #[test]
    fn questions_in_quick_succession_become_rarer() {
        let mut check = PacketCheck::new(2).unwrap();
        let start = Instant::now();
        check.asked(start);
        check.asked(start + Duration::from_secs(1));
        assert_eq!(check.due(&frames(9)), Some(25));
        check.asked(start + Duration::from_secs(60));
        assert_eq!(check.due(&frames(9)), Some(25));
    }
}
