//! How many files are made at a time, as [`fd_os::depth`] decides.
//!
//! Where nothing waits that is one, and no thread is started. What is measured then is the time in
//! which the job's thread neither works nor waits for a processor while it makes files: the time
//! that the storage takes.

use std::num::NonZeroU16;
use std::time::{Duration, Instant};

use fd_os::depth::{Bounds, Depth, Taken, processors};
use fd_os::waiting::{Queued, time_worked};

/// The most files at a time, if the settings don't say.
const MOST: usize = 64;
/// Files in a run, for each that is made at a time. There are so many because a kernel makes one
/// file at a time in a directory, so a run should have many directories.
const RUN: usize = 32;
/// But no more than these.
const LONGEST_RUN: usize = 2048;

/// After so many files, or
const STRETCH: u32 = 32;
/// after so many that have taken
const SHORT_STRETCH: u32 = 4;
/// this long, it is decided whether the storage answers late.
const LONG: Duration = Duration::from_millis(50);
/// It does if a file waits this long.
const LATE: Duration = Duration::from_micros(300);

/// So many files are made one after the other where most names of a run existed already; more, if
/// that comes again.
const REST: u32 = 256;
/// But no more than these.
const LONGEST_REST: u32 = 8192;

/// The number of files at a time, as it changes.
pub(crate) struct Pace {
    depth: Depth,
    stretch: Stretch,
    /// The last stretch seems to have waited for the storage.
    is_suspicious: bool,
    /// Files that are still made one after the other without a measurement.
    rest: u32,
    next_rest: u32,
}

/// Some files that are made one after the other.
#[derive(Default)]
struct Stretch {
    files: u32,
    /// The time that their records took.
    spent: Duration,
    /// The thread's processor time when the stretch began.
    worked: Option<Duration>,
    /// The time that it had waited for a processor then, if that is looked at.
    queued: Option<Queued>,
}

impl Pace {
    /// With always so many files at a time, if that is said.
    pub(crate) fn new(fixed: Option<NonZeroU16>) -> Self {
        let (least, most) = fixed.map_or((1, MOST), |depth| (depth.get().into(), depth.get().into()));
        // Where the job's thread works all the time, others would only be in its way.
        let bounds = Bounds { least, working: processors(), most, worth: LATE, worth_of_work: Duration::MAX };
        let stretch = Stretch::default();
        Self { depth: Depth::new(bounds), stretch, is_suspicious: false, rest: 0, next_rest: REST }
    }

    /// Whether files are made at the same time.
    pub(crate) const fn is_overlapping(&self) -> bool {
        self.depth.get() > 1 && self.rest == 0
    }

    /// How many files a run may have, and how many of them are made at a time.
    pub(crate) const fn run(&self) -> (usize, usize) {
        let depth = self.depth.get();
        (longest_run(depth), depth)
    }

    /// A run had so many files, of which so many were made; making them took this.
    pub(crate) fn had_run(&mut self, files: usize, made: usize, taken: Taken) {
        if made < files / 2 && !self.depth.bounds().is_fixed() {
            self.rest = self.next_rest;
            self.next_rest = self.next_rest.saturating_mul(2).min(LONGEST_REST);
            return;
        }
        self.next_rest = REST;
        self.depth.took(taken, files >= self.depth.get(), Instant::now());
    }

    /// A record is about to be restored; `None` if that is not measured.
    pub(crate) fn begin(&self) -> Option<Instant> {
        (!self.depth.bounds().is_fixed() && !self.is_overlapping()).then(Instant::now)
    }

    /// It was restored; `is_file`: it was the first one of a file.
    pub(crate) fn end(&mut self, begun: Option<Instant>, is_file: bool) {
        let Some(begun) = begun else { return };
        if self.rest > 0 {
            self.rest -= u32::from(is_file);
            return;
        }
        if self.stretch.worked.is_none() {
            self.stretch = Stretch::new(self.is_suspicious);
            return;
        }
        self.stretch.spent += begun.elapsed();
        self.stretch.files += u32::from(is_file);
        let Stretch { files, spent, .. } = self.stretch;
        if files >= STRETCH || (files >= SHORT_STRETCH && spent >= LONG) {
            let taken = self.stretch.taken();
            // One that has waited is looked at more closely.
            let is_sure = self.is_suspicious && self.depth.begin(taken);
            self.is_suspicious = !is_sure && taken.waited >= taken.worked;
            self.stretch = Stretch::new(self.is_suspicious);
        }
    }
}

const fn longest_run(depth: usize) -> usize {
    let files = depth.saturating_mul(RUN);
    if files < LONGEST_RUN { files } else { LONGEST_RUN }
}

impl Stretch {
    fn new(is_suspicious: bool) -> Self {
        let queued = is_suspicious.then(Queued::from_now);
        Self { files: 0, spent: Duration::ZERO, worked: Some(time_worked()), queued }
    }

    /// What its files have taken.
    fn taken(&self) -> Taken {
        let worked = time_worked().saturating_sub(self.worked.unwrap_or_default());
        let taken = Taken { calls: self.files, waited: self.spent.saturating_sub(worked), worked };
        self.queued.map_or(taken, |queued| taken.without(queued))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Duration = Duration::from_millis(20);

    /// Files that take so long each, without work.
    fn files(pace: &mut Pace, count: u32, each: Duration) {
        for _ in 0..count {
            let begun = pace.begin().map(|now| now.checked_sub(each).unwrap());
            pace.end(begun, true);
        }
    }

    /// A full run of files that wait so long each.
    fn run(pace: &mut Pace, each: Duration) {
        let (files, _) = pace.run();
        let calls = u32::try_from(files).unwrap();
        pace.had_run(files, files, Taken { calls, waited: each * calls, worked: Duration::ZERO });
    }

    #[test]
    fn files_overlap_after_two_stretches_that_wait_and_not_where_nothing_waits() {
        let mut pace = Pace::new(None);
        files(&mut pace, 10_000, Duration::ZERO);
        assert!(!pace.is_overlapping());
        let mut count = 0;
        while !pace.is_overlapping() && count < 1000 {
            files(&mut pace, 1, SLOW);
            count += 1;
        }
        assert!((SHORT_STRETCH..=2 * STRETCH).contains(&count), "{count}");
        // Full runs make it deeper, as long as files wait.
        (0..6).for_each(|_| run(&mut pace, SLOW));
        assert_eq!(pace.run(), (LONGEST_RUN, MOST));
        (0..40).for_each(|_| run(&mut pace, Duration::ZERO));
        assert!(!pace.is_overlapping());
    }

    #[test]
    fn where_names_exist_files_are_made_one_after_the_other_for_a_while() {
        let mut pace = Pace::new(None);
        while !pace.is_overlapping() {
            files(&mut pace, 1, SLOW);
        }
        for rest in [REST, 2 * REST, 4 * REST] {
            pace.had_run(32, 3, Taken::default());
            files(&mut pace, rest - 1, SLOW);
            assert!(!pace.is_overlapping());
            files(&mut pace, 1, SLOW);
            assert!(pace.is_overlapping());
        }
    }

    #[test]
    fn a_fixed_depth_stays() {
        for depth in [1, 8, 256] {
            let mut pace = Pace::new(NonZeroU16::new(depth));
            files(&mut pace, 100, SLOW);
            pace.had_run(100, 0, Taken::default());
            assert_eq!(pace.is_overlapping(), depth > 1);
            assert_eq!(pace.run(), (longest_run(usize::from(depth)), usize::from(depth)));
        }
    }
}
