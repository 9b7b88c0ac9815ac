//! What the End Job line reports as `CommBytes` and `CompressCommBytes`.

use std::ops::AddAssign;

use crate::Signal;

/// Payload bytes sent on one connection (reference 01 §4.3). Headers are not counted; a signal
/// counts with its negative number.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommCount {
    /// `CommBytes`: before compression.
    pub plain: i64,
    /// `CompressCommBytes`: as they went out.
    pub sent: i64,
}

impl CommCount {
    /// One data frame of `plain` bytes that went out as `sent` bytes.
    pub(crate) fn data(plain: usize, sent: usize) -> Self {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        Self { plain: count(plain), sent: count(sent) }
    }

    /// One signal frame.
    pub(crate) fn signal(signal: Signal) -> Self {
        let n = i64::from(signal.code());
        Self { plain: n, sent: n }
    }
}

impl AddAssign for CommCount {
    fn add_assign(&mut self, other: Self) {
        self.plain = self.plain.wrapping_add(other.plain);
        self.sent = self.sent.wrapping_add(other.sent);
    }
}
