//! The bandwidth limit of a job (reference 01 §18.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Pause that one piece of data may cost, in milliseconds; it decides how large the pieces are.
const PIECE_MILLIS: u64 = 100;
/// Smallest piece in bytes.
const PIECE_MIN: u64 = 512;
/// What may be sent at once after a quiet time, as time.
const BURST: Duration = Duration::from_millis(PIECE_MILLIS);

/// A limit in bytes per second that any thread may change at any time; clones share it. 0 is no
/// limit.
#[derive(Clone, Default, Debug)]
pub struct Bandwidth(Arc<AtomicU64>);

impl Bandwidth {
    /// A limit of this many bytes per second.
    pub fn new(bytes_per_second: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes_per_second)))
    }

    /// Changes the limit, also for data that waits already.
    pub fn set(&self, bytes_per_second: u64) {
        self.0.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Bytes per second, 0 for no limit.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Says when the next bytes may move. Time is an argument.
#[derive(Default, Debug)]
pub(crate) struct Pacer {
    limit: Bandwidth,
    /// When everything so far is paid for.
    free_at: Option<Instant>,
    /// The limit for which that was computed.
    rate: u64,
}

impl Pacer {
    pub(crate) fn set_limit(&mut self, limit: Bandwidth) {
        self.limit = limit;
    }

    /// How many of `len` bytes may move at once, at least one of them.
    pub(crate) fn piece(&self, len: usize) -> usize {
        match self.limit.get() {
            0 => len,
            limit => {
                let piece = (limit.saturating_mul(PIECE_MILLIS) / 1000).max(PIECE_MIN);
                usize::try_from(piece).unwrap_or(usize::MAX).min(len)
            }
        }
    }

    /// How long the next byte has to wait.
    pub(crate) fn wait(&mut self, now: Instant) -> Duration {
        let (limit, Some(free_at)) = (self.limit.get(), self.free_at) else { return Duration::ZERO };
        if limit == 0 {
            return Duration::ZERO;
        }
        let mut rest = free_at.saturating_duration_since(now);
        if limit != self.rate {
            // It was changed: what is owed are bytes, not time.
            let nanos = rest.as_nanos().saturating_mul(u128::from(self.rate)) / u128::from(limit);
            rest = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            (self.free_at, self.rate) = (now.checked_add(rest), limit);
        }
        rest
    }

    /// Notes that `n` bytes moved.
    pub(crate) fn moved(&mut self, now: Instant, n: usize) {
        let limit = self.limit.get();
        if limit == 0 {
            self.free_at = None;
            return;
        }
        let nanos = u128::try_from(n).unwrap_or_default() * 1_000_000_000 / u128::from(limit);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        // In the time of this limit.
        let _rest = self.wait(now);
        self.rate = limit;
        let from = self.free_at.map_or(earliest, |free_at| free_at.max(earliest));
        self.free_at = Some(from.checked_add(cost).unwrap_or(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds that `bytes` need, in virtual time.
    fn seconds_for(pacer: &mut Pacer, mut bytes: usize) -> f64 {
        let start = Instant::now();
        let mut now = start;
        while bytes > 0 {
            now += pacer.wait(now);
            let n = pacer.piece(bytes);
            pacer.moved(now, n);
            bytes -= n;
        }
        now.duration_since(start).as_secs_f64()
    }

    #[test]
    fn twenty_kilobytes_per_second_are_twenty_thousand_bytes() {
        let mut pacer = Pacer::default();
        pacer.set_limit(Bandwidth::new(20_000));
        let seconds = seconds_for(&mut pacer, 200_000);
        assert!((9.7..=10.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn an_idle_time_allows_no_more_than_one_burst() {
        let mut pacer = Pacer::default();
        pacer.set_limit(Bandwidth::new(1000));
        let start = Instant::now();
        pacer.moved(start, 1);
        pacer.moved(start + Duration::from_secs(3600), 1000);
        let wait = pacer.wait(start + Duration::from_secs(3600));
        assert_eq!(wait + BURST, Duration::from_secs(1));
    }

    #[test]
    fn another_limit_holds_for_data_that_waits_already() {
        let limit = Bandwidth::new(1000);
        let mut pacer = Pacer::default();
        pacer.set_limit(limit.clone());
        let start = Instant::now();
        pacer.moved(start, 100_100);
        assert_eq!(pacer.wait(start), Duration::from_secs(100));
        limit.set(10_000);
        assert_eq!(pacer.wait(start), Duration::from_secs(10));
        assert_eq!(pacer.wait(start + Duration::from_secs(4)), Duration::from_secs(6));
        limit.set(1000);
        assert_eq!(pacer.wait(start + Duration::from_secs(4)), Duration::from_secs(60));
    }

    #[test]
    fn no_limit_is_no_wait_and_the_limit_can_be_lifted() {
        let limit = Bandwidth::default();
        let mut pacer = Pacer::default();
        pacer.set_limit(limit.clone());
        assert!(seconds_for(&mut pacer, 1 << 40) < f64::EPSILON);
        assert_eq!(pacer.piece(1 << 20), 1 << 20);
        limit.set(1);
        let now = Instant::now();
        pacer.moved(now, 1_000_000);
        assert!(pacer.wait(now) > Duration::from_secs(100_000));
        assert_eq!(pacer.piece(1 << 20), 512);
        limit.set(0);
        assert_eq!(pacer.wait(now), Duration::ZERO);
    }
}
