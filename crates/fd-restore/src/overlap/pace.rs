//! How many files are made at a time.
//!
//! Where nothing waits that is one, and no thread is started. What is measured is the time in which
//! the job's thread neither works nor waits for a processor while it makes files: the time that the
//! storage takes.

use std::time::{Duration, Instant};

use fd_os::waiting::{scheduled, time_worked};

use crate::plan::WritingDepth;

/// The most files at a time, if the settings don't say.
const MOST: usize = 64;
/// How many are tried first.
const FIRST: usize = 8;
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
/// It does if a file waits this long,
const LATE: Duration = Duration::from_micros(300);
/// and this many times as long as the thread works.
const TIMES: u32 = 2;

/// After so many files of runs it is measured again.
const DOUBT: u32 = 8192;
/// So many files are made one after the other where most names of a run existed already; more, if
/// that comes again.
const REST: u32 = 256;
/// But no more than these.
const LONGEST_REST: u32 = 8192;

/// The number of files at a time, as it changes.
pub(crate) struct Pace {
    /// It never changes.
    is_fixed: bool,
    depth: usize,
    is_overlapping: bool,
    stretch: Stretch,
    /// The last stretch seems to have waited for the storage.
    is_suspicious: bool,
    /// Files of runs since the last measurement.
    unmeasured: u32,
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
    queued: Option<Duration>,
}

impl Pace {
    pub(crate) fn new(depth: WritingDepth) -> Self {
        let fixed = match depth {
            WritingDepth::Adaptive => None,
            WritingDepth::Fixed(depth) => Some(usize::from(depth.get())),
        };
        Self {
            is_fixed: fixed.is_some(),
            depth: fixed.unwrap_or(FIRST),
            is_overlapping: fixed.is_some_and(|depth| depth > 1),
            stretch: Stretch::default(),
            is_suspicious: false,
            unmeasured: 0,
            rest: 0,
            next_rest: REST,
        }
    }

    /// Whether files are made at the same time.
    pub(crate) const fn is_overlapping(&self) -> bool {
        self.is_overlapping
    }

    /// How many files a run may have, and how many of them are made at a time.
    pub(crate) const fn run(&self) -> (usize, usize) {
        (longest_run(self.depth), self.depth)
    }

    /// A run had so many files, of which so many were made.
    pub(crate) fn had_run(&mut self, files: usize, made: usize) {
        if self.is_fixed {
            return;
        }
        if made < files / 2 {
            self.is_overlapping = false;
            self.rest = self.next_rest;
            self.next_rest = self.next_rest.saturating_mul(2).min(LONGEST_REST);
            return;
        }
        self.next_rest = REST;
        if files >= self.depth {
            self.depth = self.depth.saturating_mul(2).min(MOST);
        }
        self.unmeasured = self.unmeasured.saturating_add(u32::try_from(files).unwrap_or(u32::MAX));
        if self.unmeasured >= DOUBT {
            self.is_overlapping = false;
            self.begin_stretch(true);
        }
    }

    /// A record is about to be restored; `None` if that is not measured.
    pub(crate) fn begin(&self) -> Option<Instant> {
        (!self.is_fixed && !self.is_overlapping).then(Instant::now)
    }

    /// It was restored; `is_file`: it was the first one of a file.
    pub(crate) fn end(&mut self, begun: Option<Instant>, is_file: bool) {
        let Some(begun) = begun else { return };
        if self.rest > 0 {
            self.rest -= u32::from(is_file);
            return;
        }
        if self.stretch.worked.is_none() {
            self.begin_stretch(self.is_suspicious);
            return;
        }
        self.stretch.spent += begun.elapsed();
        self.stretch.files += u32::from(is_file);
        let Stretch { files, spent, .. } = self.stretch;
        if files >= STRETCH || (files >= SHORT_STRETCH && spent >= LONG) {
            let waits = self.stretch.waits();
            if waits && self.is_suspicious {
                self.is_overlapping = true;
                self.unmeasured = 0;
            }
            self.begin_stretch(waits);
        }
    }

    fn begin_stretch(&mut self, is_suspicious: bool) {
        self.is_suspicious = is_suspicious;
        let queued = if is_suspicious { scheduled().map(|counted| counted.delayed) } else { None };
        self.stretch = Stretch { files: 0, spent: Duration::ZERO, worked: Some(time_worked()), queued };
    }
}

const fn longest_run(depth: usize) -> usize {
    let files = depth.saturating_mul(RUN);
    if files < LONGEST_RUN { files } else { LONGEST_RUN }
}

impl Stretch {
    /// Whether its files have mostly waited for the storage.
    fn waits(&self) -> bool {
        let worked = time_worked().saturating_sub(self.worked.unwrap_or_default());
        let mut waited = self.spent.saturating_sub(worked);
        if let Some(before) = self.queued
            && let Some(now) = scheduled()
        {
            waited = waited.saturating_sub(now.delayed.saturating_sub(before));
        }
        waited >= LATE * self.files && waited >= worked * TIMES
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU16;

    use super::*;

    /// Files that take so long each, without work.
    fn files(pace: &mut Pace, count: u32, each: Duration) {
        for _ in 0..count {
            let begun = pace.begin().map(|now| now.checked_sub(each).unwrap());
            pace.end(begun, true);
        }
    }

    #[test]
    fn files_overlap_after_two_stretches_that_wait_and_not_where_nothing_waits() {
        let mut pace = Pace::new(WritingDepth::Adaptive);
        files(&mut pace, 10_000, Duration::ZERO);
        assert!(!pace.is_overlapping());
        let late = Duration::from_millis(20);
        let mut count = 0;
        while !pace.is_overlapping() && count < 1000 {
            files(&mut pace, 1, late);
            count += 1;
        }
        assert!((SHORT_STRETCH..=2 * STRETCH).contains(&count), "{count}");
        assert_eq!(pace.run(), (FIRST * RUN, FIRST));
        // Full runs make it deeper; then it is measured again.
        pace.had_run(FIRST * RUN, FIRST * RUN);
        assert_eq!(pace.run().1, 2 * FIRST);
        let mut runs = 0;
        while pace.is_overlapping() {
            pace.had_run(LONGEST_RUN, LONGEST_RUN);
            runs += 1;
        }
        assert_eq!((pace.run().1, runs), (MOST, 4));
        files(&mut pace, SHORT_STRETCH, late);
        assert!(pace.is_overlapping());
        pace.unmeasured = DOUBT;
        pace.had_run(1, 1);
        files(&mut pace, 1000, Duration::ZERO);
        assert!(!pace.is_overlapping());
    }

    #[test]
    fn where_names_exist_files_are_made_one_after_the_other_for_a_while() {
        let mut pace = Pace::new(WritingDepth::Adaptive);
        let late = Duration::from_millis(20);
        for rest in [REST, 2 * REST, 4 * REST] {
            while !pace.is_overlapping() {
                files(&mut pace, 1, late);
            }
            pace.had_run(32, 3);
            assert!(!pace.is_overlapping());
            files(&mut pace, rest, late);
            assert!(!pace.is_overlapping());
        }
    }

    #[test]
    fn a_fixed_depth_stays() {
        for depth in [1, 8, 256] {
            let mut pace = Pace::new(WritingDepth::Fixed(NonZeroU16::new(depth).unwrap()));
            files(&mut pace, 100, Duration::from_millis(20));
            pace.had_run(100, 0);
            assert_eq!(pace.is_overlapping(), depth > 1);
            assert_eq!(pace.run(), (longest_run(usize::from(depth)), usize::from(depth)));
        }
    }
}
