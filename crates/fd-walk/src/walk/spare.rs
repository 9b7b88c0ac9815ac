//! Leaves out what an inode scan has found to be old, and looks again where the scan was wrong.

use fd_messages::MessageType;
use fd_records::Stat;
use rustix::io::Errno;

use super::judge::{Changed, Judge};
use super::place::Place;
use super::report::Report;
use crate::ahead::Ahead;
use crate::attributes::Found;
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
            let is_done = place.leaf != 0 && !self.scans.was_left_out(dev, place.leaf);
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
        if place.is_too_long() || !self.scans.spares(dev, place.leaf, &name) {
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
        let spared = place.parent.filter(|_| is_doubt).map(|(_, dev)| (dev, place.leaf));
        let Some(dev) = self.scans.found(spared, found) else { return Ok(()) };
        ahead.remove_scan(dev);
        report.say(MessageType::Warning, |text| texts::wrong_scan(text, place.path, found.is_ok()))
    }

    /// Whether an entry that is no directory has its turn: all names of a file that a wrong scan
    /// has left out are looked at in the second walk, and nothing else.
    pub(super) fn has_its_turn(&self, stat: &Stat) -> bool {
        self.looks_again == self.scans.was_left_out(stat.dev, stat.ino)
    }

    /// The tree was walked. Whether it is to be walked again, as a scan was wrong.
    pub(super) fn begins_again(&mut self) -> bool {
        self.looks_again = self.scans.end_if_wrong();
        self.looks_again
    }
}
