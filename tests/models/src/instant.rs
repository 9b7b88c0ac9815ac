//! Moments of the model's clock.

use std::ops::{Add, Sub};
use std::time::Duration;

use crate::execution::now;

/// As that of the standard library.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Instant(Duration);

impl Instant {
    /// Now.
    pub fn now() -> Self {
        Self(now())
    }

    /// The time since then.
    pub fn elapsed(&self) -> Duration {
        now().saturating_sub(self.0)
    }

    /// So much earlier, if the model had begun then.
    pub fn checked_sub(self, time: Duration) -> Option<Self> {
        self.0.checked_sub(time).map(Self)
    }

    /// The time from another moment to this one; zero if that is later.
    pub const fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}
