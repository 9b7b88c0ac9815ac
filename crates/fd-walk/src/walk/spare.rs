//! Leaves out what an inode scan has found to be old, and looks again where the scan was wrong, or
//! a directory has changed.

use std::os::fd::BorrowedFd;

use fd_messages::MessageType;
use fd_records::Stat;
use rustix::io::Errno;

use super::judge::{Changed, Judge};
use super::place::Place;
use super::report::Report;
use super::unsettled::Unsettled;
use crate::ahead::Ahead;
use crate::attributes::Found;
use crate::directory::{AGAIN, push_name};
use crate::scan::Scans;
use crate::settings::WalkEnd;
use crate::texts;

/// What becomes of an entry before it is looked up.
pub(super) enum Spare {
    /// It is looked up.
    No,
    /// A doubt has looked it up.
    Found(Result<Found, Errno>),
    /// It has been dealt with.
    Done,
}

/// See the module.
pub(super) struct Sparing {
    pub(super) scans: Scans,
    /// The tree is walked once more: only what a scan has left out that isn't trusted is looked at,
    /// and reported.
    pub(super) looks_again: bool,
}

impl Sparing {
    /// See [`Spare`].
    pub(super) fn spare<'w>(
        &mut self,
        place: &Place<'w, '_>,
        judge: &Judge<'w>,
        ahead: &mut Ahead,
        report: &mut Report<'_>,
    ) -> Result<Spare, WalkEnd> {
        let Some((directory, dev)) = place.parent else { return Ok(Spare::No) };
        if self.looks_again {
            let is_known = place.leaf != 0 && self.scans.hiding_exchanges(dev).is_none();
            let is_done = is_known && !self.scans.was_left_out(dev, place.leaf);
            return Ok(if is_done { Spare::Done } else { Spare::No });
        }
        if !self.scans.are_on() || !place.read_at.is_the_name() {
            return Ok(Spare::No);
        }
        let host = report.host;
        if let Some(ended) = self.scans.step(directory, dev, ahead.is_on(), &|| host.is_canceled())? {
            if let Ok(known) = &ended {
                ahead.add_scan(known);
            }
            host.scanned(dev, ended.map(|known| known.size()).map_err(|refusal| refusal.to_string()));
        }
        let (_, name) = place.target();
        let unsettled = place.unsettled.filter(|_| self.scans.hiding_exchanges(dev).is_some());
        let has_changed = unsettled.is_some_and(|unsettled| unsettled.has_changed.get());
        if place.is_too_long() || has_changed || !self.scans.spares(dev, place.leaf, &name) {
            return Ok(Spare::No);
        }
        if self.scans.is_over(dev) {
            ahead.remove_scan(dev);
            return Ok(Spare::No);
        }
        let judgement = judge.judge(place, false);
        let listed = judge.listed(place, &judgement);
        if !self.scans.is_listed(dev, place.leaf, listed.as_ref()) {
            return Ok(Spare::No);
        }
        if self.scans.doubts() {
            return Ok(Spare::Found(ahead.directly(|calls| place.lstat(calls))));
        }
        // It counts as seen, accepted or not, as if these attributes had been looked up.
        let stat = listed.map(|listed| Stat { ino: place.leaf, ..listed });
        if stat.is_some_and(|stat| !matches!(judge.compare(place, &stat, &judgement), Changed::No)) {
            return Ok(Spare::No);
        }
        self.scans.leave_out(dev, place.leaf);
        report.summary.not_looked_up += 1;
        if let Some(unsettled) = unsettled {
            push_name(&mut unsettled.names.borrow_mut(), AGAIN, &name);
            unsettled.count.update(|count| count + 1);
        }
        if judgement.accepted {
            report.unchanged(place.path)?;
        }
        Ok(Spare::Done)
    }

    /// Whether a lookup shows that a scan was wrong. `is_doubt`: of an entry that could have been
    /// left out.
    pub(super) fn doubt(
        &mut self,
        place: &Place<'_, '_>,
        is_doubt: bool,
        found: &Result<Found, Errno>,
        ahead: &mut Ahead,
        report: &mut Report<'_>,
    ) -> Result<(), WalkEnd> {
        let is_as_it_was = |directory, dev| {
            let known = self.scans.hiding_exchanges(dev).zip(place.unsettled);
            known.is_none_or(|(known, unsettled)| known.is_as_it_was(directory, unsettled.opened))
        };
        let spared = place.parent.filter(|(directory, dev)| is_doubt && is_as_it_was(*directory, *dev));
        let spared = spared.map(|(_, dev)| (dev, place.leaf));
        let Some(dev) = self.scans.found(spared, found) else { return Ok(()) };
        ahead.remove_scan(dev);
        report.say(MessageType::Warning, |text| texts::wrong_scan(text, place.path, found.is_ok()))
    }

    /// Decides about what was left out in a directory so far. Returns the names that are to be
    /// looked up after all, as it has changed.
    pub(super) fn settle(
        &self,
        directory: Option<BorrowedFd<'_>>,
        dev: u64,
        unsettled: &Unsettled,
        report: &mut Report<'_>,
    ) -> Option<Vec<u8>> {
        let (names, count) = (unsettled.names.take(), unsettled.count.take());
        if names.is_empty() {
            return None;
        }
        let known = self.scans.hiding_exchanges(dev).zip(directory);
        if known.is_some_and(|(known, directory)| known.is_as_it_was(directory, unsettled.opened)) {
            return None;
        }
        unsettled.has_changed.set(true);
        report.summary.not_looked_up = report.summary.not_looked_up.saturating_sub(count);
        Some(names)
    }

    /// Whether an entry that is no directory has its turn: all names of a file that a wrong scan
    /// has left out are looked at in the second walk, and nothing else.
    pub(super) fn has_its_turn(&self, stat: &Stat) -> bool {
        self.looks_again == self.scans.was_left_out(stat.dev, stat.ino)
    }

    /// Whether an entry was said to be unchanged, when it was left out.
    pub(super) fn has_told(&self, place: &Place<'_, '_>) -> bool {
        self.looks_again || place.leaf == AGAIN
    }

    /// The tree was walked. Whether it is to be walked again, as a scan was wrong.
    pub(super) fn begins_again(&mut self) -> bool {
        self.looks_again = self.scans.end_if_wrong();
        self.looks_again
    }
}
