//! The scans of one walk: when one is begun, what is left out by it, and whether it was right.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_os::lock::Mutex;
use fd_os::threads::GLANCE;
use fd_records::Stat;
use rustix::io::Errno;

use super::known::{Known, Moment};
use super::open;
use super::run::{Run, Turn, Wanted};
use super::table::Refusal;
use crate::attributes::Found;
use crate::settings::{Compared, InodeScan, WalkEnd};

/// One of so many entries is looked up all the same.
const DOUBT: u64 = 256;
/// After so many entries it is considered anew whether a scan pays, or has ended.
const STEP: u64 = 32;
/// For fewer entries none is begun.
const FEW: u64 = 2000;
/// A lookup takes no longer where storage is not late. While a scan reads the inodes that may cost
/// one in this time, it is waited for: lookups would only take the processors from it. Where
/// storage is late, many go on beside it. So does the walk where others want the processors, of
/// which two threads get more than one.
const LOOKUP: Duration = Duration::from_micros(20);
/// A walk waits no longer for its scans.
const LONGEST: Duration = Duration::from_secs(10);

/// More file systems, of which a subvolume is one, are not considered in a walk.
const MOST_DEVICES: usize = 256;
/// What the scans of a walk know takes no more bytes than these.
const MOST_MEMORY: usize = 160 << 20;

/// File systems, by their devices, on which a scan was wrong.
static DISTRUSTED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// A scan that is used, and the entries that were left out: for each piece of its set, a bit for
/// each inode.
struct Used {
    known: Arc<Known>,
    left_out: Vec<u64>,
}

impl Used {
    fn leave_out(&mut self, ino: u64) {
        if let Some((place, bit)) = self.known.old.find(ino)
            && let Some(bits) = self.left_out.get_mut(place)
        {
            *bits |= bit;
        }
    }

    fn has_left_out(&self, ino: u64) -> bool {
        let found = self.known.old.find(ino);
        found.is_some_and(|(place, bit)| self.left_out.get(place).is_some_and(|bits| bits & bit != 0))
    }
}

/// A file system for which it is considered whether to begin.
#[derive(Clone, Copy)]
struct Watched {
    /// So many entries were met.
    met: u64,
    is_whole: bool,
    /// So many inodes are to be read, if a scan was too long already.
    least: u64,
    /// As [`open::inodes`].
    inodes: Option<(u64, u64)>,
}

impl Watched {
    fn new(directory: BorrowedFd<'_>) -> Self {
        Self { met: 0, is_whole: open::is_top(directory), least: 0, inodes: open::inodes(directory) }
    }

    /// How many inodes may be read if a scan is begun now; `None` if it does not pay yet.
    fn most(&self) -> Option<u64> {
        let (in_use, at_once) = self.inodes?;
        pays(in_use, at_once, self.met, self.is_whole).filter(|most| *most >= self.least)
    }

    /// Whether a scan that has read so many inodes in this time is as fast as where storage is not
    /// late, nor others want the processors. It may take a moment to begin.
    fn is_on_time(&self, inodes: u64, took: Duration) -> bool {
        let lookups = self.inodes.map_or(0, |(_, at_once)| inodes / at_once);
        took <= LOOKUP.saturating_mul(u32::try_from(lookups).unwrap_or(u32::MAX)) + GLANCE
    }

    /// What becomes of it when a scan is refused: one that is too long now may pay later.
    fn after(self, refusal: &Refusal) -> State {
        match refusal {
            Refusal::Long(inodes) => State::Watched(Self { least: *inodes, ..self }),
            _ => State::None,
        }
    }
}

enum State {
    Watched(Watched),
    Begun(Run, Watched),
    Used(Used),
    /// It was wrong, or another one was.
    Wrong(Used),
    /// There is none, or it is not used any more.
    None,
}

impl State {
    /// What a scan has found, even if it is not trusted any more.
    fn known(&self) -> Option<&Known> {
        match self {
            Self::Used(used) | Self::Wrong(used) => Some(&used.known),
            _ => None,
        }
    }
}

/// The scans of one walk.
pub(crate) struct Scans {
    setting: InodeScan,
    wanted: Wanted,
    at: Vec<(u64, State)>,
    steps: u64,
    left_out: u64,
    /// So long it may still be waited for scans.
    patience: Duration,
}

impl Scans {
    /// `compared`: by an accurate list, beside the times.
    pub(crate) fn new(setting: InodeScan, since: i64, compared: Option<Compared>) -> Self {
        // What is to come must count as changed.
        let setting = if since > Moment::now().seconds() { InodeScan::Off } else { setting };
        let wanted = Wanted { since, compared, most: u64::MAX };
        Self { setting, wanted, at: Vec::new(), steps: 0, left_out: 0, patience: LONGEST }
    }

    /// Whether there may be scans.
    pub(crate) fn are_on(&self) -> bool {
        self.setting != InodeScan::Off
    }

    /// The walk is at an entry of this directory. Returns what a scan has found that has ended.
    /// `are_dear`: lookups.
    ///
    /// # Errors
    /// [`WalkEnd::Canceled`]: a scan was waited for, and the job was canceled.
    pub(crate) fn step(
        &mut self,
        directory: BorrowedFd<'_>,
        dev: u64,
        are_dear: bool,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<Option<Result<Arc<Known>, Refusal>>, WalkEnd> {
        self.steps += 1;
        let is_always = self.setting == InodeScan::Always;
        let place = match self.at.iter().position(|(of, _)| *of == dev) {
            Some(place) if self.steps.is_multiple_of(STEP) => place,
            Some(_) => return Ok(None),
            None if self.at.len() == MOST_DEVICES => return Ok(None),
            None => {
                let state = if DISTRUSTED.lock().contains(&dev) {
                    State::None
                } else {
                    State::Watched(Watched::new(directory))
                };
                self.at.push((dev, state));
                self.at.len() - 1
            }
        };
        let Some((_, state)) = self.at.get_mut(place) else { return Ok(None) };
        if let State::Watched(watched) = state {
            watched.met += STEP;
            let most = if is_always { Some(u64::MAX) } else { watched.most().filter(|_| are_dear) };
            let Some(most) = most else { return Ok(None) };
            let Some(turn) = Turn::take(dev) else { return Ok(None) };
            let run = match Run::begin(directory, turn, Wanted { most, ..self.wanted }) {
                Ok(run) => run,
                Err(refusal) => {
                    *state = State::None;
                    return Ok(Some(Err(refusal)));
                }
            };
            if !is_always {
                let begun = Instant::now();
                run.wait(self.patience, || watched.is_on_time(run.inodes(), begun.elapsed()) && !is_canceled());
                self.patience = self.patience.saturating_sub(begun.elapsed());
            }
            *state = State::Begun(run, *watched);
        }
        match std::mem::replace(state, State::None) {
            State::Begun(run, watched) if is_always || run.has_ended() => {
                let ended = run.end(|| !is_canceled()).filter(|_| !is_canceled());
                let Some(ended) = ended else { return Err(WalkEnd::Canceled) };
                let has_room = |known: &Arc<Known>| {
                    let others = self.at.iter().filter_map(|(_, state)| state.known());
                    others.map(Known::memory).sum::<usize>() + known.memory() <= MOST_MEMORY
                };
                let ended = match ended {
                    Ok(known) if !has_room(&known) => Err(Refusal::Unknown("size")),
                    ended => ended,
                };
                let Some((_, state)) = self.at.get_mut(place) else { return Ok(None) };
                *state = match &ended {
                    Ok(known) => State::Used(Used { known: Arc::clone(known), left_out: vec![0; known.old.pieces()] }),
                    Err(refusal) => watched.after(refusal),
                };
                return Ok(Some(ended));
            }
            other => *state = other,
        }
        Ok(None)
    }

    /// The scan of this device.
    pub(crate) fn known(&self, dev: u64) -> Option<&Arc<Known>> {
        self.at.iter().find(|(of, _)| *of == dev).and_then(|(_, state)| match state {
            State::Used(used) => Some(&used.known),
            _ => None,
        })
    }

    /// Whether an entry with this inode, which can be left out by its times, can be so by the
    /// accurate list, if there is one. `listed`: what that has about it.
    pub(crate) fn is_listed(&self, dev: u64, ino: u64, listed: Option<&Stat>) -> bool {
        self.known(dev).is_some_and(|known| known.is_listed(ino, listed))
    }

    /// Whether an entry of this name with this inode can be left out by its times.
    pub(crate) fn spares(&self, dev: u64, ino: u64, name: &[u8]) -> bool {
        self.known(dev).is_some_and(|known| known.has(ino) && !known.mounts.has(name) && known.has_its_device())
    }

    /// Whether nothing can be left out any more, as the clock was set back.
    pub(crate) fn is_over(&self, dev: u64) -> bool {
        self.known(dev).is_some_and(|known| known.begun.is_set_back())
    }

    /// Whether the next such entry is looked up all the same.
    pub(crate) const fn doubts(&mut self) -> bool {
        self.left_out += 1;
        self.left_out % DOUBT == 1
    }

    /// An entry is left out.
    pub(crate) fn leave_out(&mut self, dev: u64, ino: u64) {
        for (of, state) in &mut self.at {
            if let State::Used(used) = state
                && *of == dev
            {
                used.leave_out(ino);
            }
        }
    }

    /// A lookup has found this. `spared`: device and inode of an entry that could have been left
    /// out. Returns the device of a scan that was wrong, which is not used any more then.
    pub(crate) fn found(&mut self, spared: Option<(u64, u64)>, found: &Result<Found, Errno>) -> Option<u64> {
        for (dev, state) in &mut self.at {
            let ino = spared.filter(|(of, _)| of == dev).map(|(_, ino)| ino);
            let State::Used(used) = state else { continue };
            if used.known.is_wrong(ino, self.wanted.since, found) {
                DISTRUSTED.lock().push(*dev);
                let left_out = std::mem::take(&mut used.left_out);
                *state = State::Wrong(Used { known: Arc::clone(&used.known), left_out });
                return Some(*dev);
            }
        }
        None
    }

    /// Whether a scan was wrong. Then no other one is trusted, either: what they have left out is
    /// looked at as well, so that nothing can be wrong after that.
    pub(crate) fn end_if_wrong(&mut self) -> bool {
        let were_wrong = self.at.iter().any(|(_, state)| matches!(state, State::Wrong(_)));
        for (_, state) in self.at.iter_mut().filter(|_| were_wrong) {
            *state = match std::mem::replace(state, State::None) {
                State::Used(used) => State::Wrong(used),
                other => other,
            };
        }
        were_wrong
    }

    /// Whether an entry with this inode may have been left out by a scan that was wrong.
    pub(crate) fn was_left_out(&self, dev: u64, ino: u64) -> bool {
        self.at.iter().any(|(of, state)| matches!(state, State::Wrong(used) if *of == dev && used.has_left_out(ino)))
    }
}

impl Drop for Scans {
    /// Ends those that still read, so that the file systems can be unmounted after the walk.
    fn drop(&mut self) {
        for (_, state) in &self.at {
            if let State::Begun(run, _) = state {
                run.stop();
            }
        }
        for (_, state) in self.at.drain(..) {
            if let State::Begun(run, _) = state {
                let _ended = run.end(|| false);
            }
        }
    }
}

/// How many inodes may be read if a scan is to cost less than the lookups that it spares; `None` if
/// more are in use. Reading `at_once` costs as much as one lookup. A subtree is supposed to be as
/// large as what was met of it; so a scan costs at most what was spent already.
fn pays(inodes: u64, at_once: u64, met: u64, is_whole: bool) -> Option<u64> {
    let left = if is_whole { inodes.saturating_sub(met) } else { met };
    Some(left.saturating_mul(at_once)).filter(|most| left >= FEW && *most > inodes)
}

#[cfg(test)]
impl Scans {
    /// Those that have found this, and are used.
    pub(crate) fn of_test(since: i64, found: Vec<Known>) -> Self {
        let used = |known: Known| Used { left_out: vec![0; known.old.pieces()], known: known.into() };
        let at = found.into_iter().map(|known| (known.dev, State::Used(used(known)))).collect();
        Self {
            setting: InodeScan::Auto,
            wanted: Wanted { since, compared: None, most: u64::MAX },
            at,
            steps: 0,
            left_out: 0,
            patience: LONGEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::attributes::Nanoseconds;

    #[test]
    fn where_one_scan_was_wrong_all_is_looked_at_that_any_has_left_out() {
        let devices = [u64::MAX, u64::MAX - 1];
        let known = devices.map(|dev| Known::of_test(dev, &[64, 65], UNIX_EPOCH + Duration::from_secs(2000)));
        let mut scans = Scans::of_test(1000, known.into());
        for dev in devices {
            scans.leave_out(dev, 64);
        }
        let other = |dev| Ok((Stat { dev, ino: 66, ctime: 999, ..Stat::default() }, Nanoseconds::default()));
        assert_eq!(scans.found(Some((devices[0], 65)), &other(devices[0])), Some(devices[0]));
        assert!(scans.was_left_out(devices[0], 64) && !scans.was_left_out(devices[1], 64));
        assert!(scans.end_if_wrong());
        for dev in devices {
            assert!(scans.was_left_out(dev, 64) && !scans.was_left_out(dev, 65), "{dev:x}");
            // It has nothing more to say.
            assert_eq!(scans.found(Some((dev, 65)), &other(dev)), None);
        }
    }

    #[test]
    fn a_scan_pays_where_it_spares_more_lookups_than_it_costs() {
        for (inodes, met, is_whole, wanted) in [
            // A whole file system, and one that is too small, or nearly done.
            (300_000, 32, true, Some(299_968 * 12)),
            (1_900, 32, true, None),
            (300_000, 298_500, true, None),
            // A directory may have as many entries again as were met of it.
            (300_000, 200, false, None),
            (300_000, 20_000, false, None),
            (300_000, 30_000, false, Some(360_000)),
        ] {
            assert_eq!(pays(inodes, 12, met, is_whole), wanted, "{inodes} {met} {is_whole}");
        }
    }

    #[test]
    fn a_scan_is_waited_for_as_long_as_the_lookups_take_that_it_may_cost() {
        let watched = |inodes| Watched { met: 32, is_whole: true, least: 0, inodes };
        let is_on_time = |read, millis| watched(Some((900_000, 12))).is_on_time(read, Duration::from_millis(millis));
        assert!(is_on_time(0, 100) && !is_on_time(0, 101), "it may take a moment to begin");
        assert!(is_on_time(300_000, 600) && !is_on_time(300_000, 601));
        assert!(!watched(None).is_on_time(300_000, Duration::from_millis(101)));
    }

    #[test]
    fn a_scan_that_was_too_long_is_begun_again_once_it_pays() {
        const EVER_USED: u64 = 600_000;
        let inodes = Some((500_000, 12));
        let (mut watched, mut begun) = (Watched { met: 0, is_whole: false, least: 0, inodes }, Vec::new());
        while watched.met < 300_000 {
            watched.met += STEP;
            let Some(most) = watched.most() else { continue };
            begun.push(watched.met);
            if EVER_USED <= most {
                break;
            }
            let State::Watched(again) = watched.after(&Refusal::Long(EVER_USED)) else { break };
            watched = again;
        }
        assert_eq!(begun, [41_696, 50_016], "first once twelve for each are more than what is in use");
        assert!(matches!(watched.after(&Refusal::Stopped), State::None));
        // The longer a walk of a whole file system takes, the less it pays.
        let whole = |in_use| Watched { met: 32, is_whole: true, least: EVER_USED, inodes: Some((in_use, 12)) };
        assert_eq!((whole(50_000).most(), whole(50_032).most()), (None, Some(EVER_USED)));
    }
}
