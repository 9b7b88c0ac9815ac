//! What a scan has found.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fd_records::Stat;
use rustix::io::Errno;

use super::inodes::Inodes;
use super::mounts::MountNames;
use super::prints::Prints;
use crate::attributes::Found;
use crate::settings::times_are_old;

/// Whether an inode can be left out. Times before 1970 aren't trusted.
pub(super) const fn is_old(mtime: i64, ctime: i64, since: i64) -> bool {
    mtime >= 0 && ctime >= 0 && times_are_old(mtime, ctime, since, false)
}

/// A moment on two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    time: SystemTime,
    pub(super) instant: Instant,
}

impl Moment {
    pub(super) fn now() -> Self {
        let time = SystemTime::now();
        Self { time, instant: Instant::now() }
    }

    /// Seconds since 1970.
    pub(super) fn seconds(&self) -> i64 {
        let since = self.time.duration_since(UNIX_EPOCH).ok();
        since.and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(i64::MIN)
    }

    /// By how much the clock was set back since.
    fn set_back(&self) -> Duration {
        // Asked in this order, and in the other one before, so that it is never too early.
        let elapsed = self.instant.elapsed();
        let now = SystemTime::now();
        self.time.checked_add(elapsed).and_then(|time| time.duration_since(now).ok()).unwrap_or_default()
    }

    /// Whether the clock was set back since.
    pub(super) fn is_set_back(&self) -> bool {
        self.set_back() > Duration::ZERO
    }

    /// What has changed since has no time before this second.
    pub(super) fn earliest_change(&self) -> i64 {
        // The kernel's clock of files is one of its ticks late.
        let late = self.set_back().as_nanos().div_ceil(1_000_000_000) + 1;
        self.seconds().saturating_sub(i64::try_from(late).unwrap_or(i64::MAX))
    }
}

/// What a scan has found.
#[derive(Debug)]
pub(crate) struct Known {
    pub(super) dev: u64,
    pub(super) old: Inodes,
    /// Of these, in a job with an accurate list.
    pub(super) prints: Option<Prints>,
    pub(super) mounts: MountNames,
    pub(super) begun: Moment,
    pub(super) inodes: u64,
    pub(super) took: Duration,
    /// A directory of the file system. While it is open, no other one gets this device; but the
    /// number of a subvolume that is deleted is given to another one.
    pub(super) held: Arc<OwnedFd>,
}

impl Known {
    pub(crate) const fn dev(&self) -> u64 {
        self.dev
    }

    /// Bytes that it and what is left out by it take.
    pub(super) fn memory(&self) -> usize {
        const PIECE: usize = 3 * size_of::<u64>();
        self.old.pieces() * PIECE + self.prints.as_ref().map_or(0, Prints::memory)
    }

    /// How many inodes there are, and how long reading them took.
    pub(crate) const fn size(&self) -> (u64, Duration) {
        (self.inodes, self.took)
    }

    /// Whether it is still about what has this device. What was found to have it before this is
    /// asked, and is open, is then of the file system that was scanned.
    pub(super) fn has_its_device(&self) -> bool {
        // Only those without a disk's number are given again.
        rustix::fs::major(self.dev) != 0 || rustix::fs::fstat(&self.held).is_ok_and(|found| found.st_dev == self.dev)
    }

    /// Whether this inode is old.
    pub(crate) fn has(&self, ino: u64) -> bool {
        ino != 0 && self.old.has(ino)
    }

    /// Whether an old inode is as an accurate list has it: `listed`, if there is one.
    pub(super) fn is_listed(&self, ino: u64, listed: Option<&Stat>) -> bool {
        let is_so = |prints: &Prints| listed.is_some_and(|stat| prints.has(&self.old, ino, stat));
        self.prints.as_ref().is_none_or(is_so)
    }

    /// Whether a lookup shows that the scan was wrong. `spared`: the inode that it was made for, of
    /// an entry that could have been left out.
    pub(super) fn is_wrong(&self, spared: Option<u64>, since: i64, found: &Result<Found, Errno>) -> bool {
        match found {
            Ok((stat, _)) => {
                let has_changed = || stat.ctime >= self.begun.earliest_change();
                let is_here = stat.dev == self.dev;
                let is_other = spared.is_some_and(|ino| !is_here || stat.ino != ino);
                let is_called_old = is_here && self.has(stat.ino);
                let is_so = || is_old(stat.mtime, stat.ctime, since) && self.is_listed(stat.ino, Some(stat));
                (is_other || is_called_old && !is_so()) && !has_changed() && self.has_its_device()
            }
            // It has gone.
            Err(Errno::NOENT) => false,
            Err(_) => spared.is_some() && self.has_its_device(),
        }
    }
}

#[cfg(test)]
impl Known {
    /// What a scan that has begun at this time has found on this device.
    pub(crate) fn of_test(dev: u64, inodes: &[u64], begun: SystemTime) -> Self {
        let (mut old, begun) = (Inodes::default(), Moment { time: begun, instant: Instant::now() });
        assert!(inodes.iter().all(|ino| old.add(*ino)));
        old.finish();
        let is_it = |path: &std::path::PathBuf| rustix::fs::stat(path).unwrap().st_dev == dev;
        let place = Some(std::env::temp_dir()).filter(is_it).unwrap_or_else(|| "/".into());
        let held = Arc::new(std::fs::File::open(place).unwrap().into());
        let inodes = inodes.len() as u64;
        let (prints, mounts, took) = (None, MountNames::default(), Duration::ZERO);
        Self { dev, old, prints, mounts, begun, inodes, took, held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Nanoseconds;

    /// The number of a disk.
    const DISK: u64 = 0x701;

    #[test]
    fn a_clock_that_was_set_back_is_noticed() {
        let now = Moment::now();
        assert!((0..1000).all(|_| !now.is_set_back()));
        let before = Moment { time: now.time + Duration::from_secs(1), instant: now.instant };
        assert!(before.is_set_back());
        let forward = Moment { time: now.time - Duration::from_secs(1), instant: now.instant };
        assert!(!forward.is_set_back());
    }

    #[test]
    fn what_has_changed_after_the_clock_was_set_back_does_not_show_that_the_scan_was_wrong() {
        let known = Known::of_test(DISK, &[64], SystemTime::now() + Duration::from_secs(100));
        let is_wrong = |ctime| {
            let stat = Stat { dev: DISK, ino: 64, ctime, ..Stat::default() };
            known.is_wrong(None, 1000, &Ok((stat, Nanoseconds::default())))
        };
        let begun = known.begun.seconds();
        assert!(!is_wrong(begun - 90) && is_wrong(begun - 103));
    }

    #[test]
    fn a_lookup_that_the_scan_did_not_expect_shows_that_it_was_wrong() {
        let (dev, old, since) = (DISK, 64, 1000);
        let known = Known::of_test(dev, &[old], UNIX_EPOCH + Duration::from_secs(2000));
        let is_wrong = |spared, dev, ino, ctime| {
            let stat = Stat { dev, ino, ctime, ..Stat::default() };
            known.is_wrong(spared, since, &Ok((stat, Nanoseconds::default())))
        };
        // (what it was looked up for, device, inode, change time)
        for (spared, dev, ino, ctime) in [
            (Some(old), dev, old, 999),
            (None, dev, old, 999),
            (None, dev, old + 1, 1500),
            (None, dev + 1, old, 1500),
            // It may have changed since.
            (Some(old), dev, old, 1999),
            (Some(old), dev, old + 1, 1999),
            (None, dev, old, 1999),
        ] {
            assert!(!is_wrong(spared, dev, ino, ctime), "{spared:?} {dev} {ino} {ctime}");
        }
        for (spared, dev, ino, ctime) in [
            (Some(old), dev, old, 1500),
            (Some(old), dev, old + 1, 999),
            (Some(old), dev + 1, old, 999),
            // Above all a directory, all of which are looked up.
            (None, dev, old, 1500),
            (None, dev, old, -5),
        ] {
            assert!(is_wrong(spared, dev, ino, ctime), "{spared:?} {dev} {ino} {ctime}");
        }
        for (errno, with, without) in [(Errno::NOENT, false, false), (Errno::ACCESS, true, false)] {
            assert_eq!(known.is_wrong(Some(old), since, &Err(errno)), with);
            assert_eq!(known.is_wrong(None, since, &Err(errno)), without);
        }
    }
}
