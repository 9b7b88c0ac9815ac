//! Decides about each entry of a batch before the batch is numbered: the Storage Daemon takes no
//! gaps, so an entry that has vanished since the walk must not have a FileIndex.
//!
//! Files are opened here, and compared where only their data decides. Open files are held until
//! their turn. Not here: reading them for the stream.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fd_crypto::Digesters;
use fd_records::FileType;
use fd_walk::{Entry, HardLink, Identity, LinkState};
use rustix::fs::fstat;
use rustix::io::{Errno, pread, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::exchange::Stopped;
use crate::exchange::pace::Pace;
use crate::exchange::piece::Event;
use crate::file::compare::{Comparer, Decision, Finding};
use crate::shared::batch::Item;
use crate::shared::job::Job;
use crate::shared::meter::Meter;
use crate::source::kinds::is_read;
use crate::source::page_cache::PageCache;
use crate::source::{Opened, open_regular};

/// Number of open files, over all jobs, that are held until their turn.
pub(crate) static HELD: AtomicUsize = AtomicUsize::new(0);

/// A file that is held open until its turn. At most a quarter of the descriptors of the process are
/// used for that, or half of them by files that an earlier job may have: connections and the walk
/// need some, too.
#[derive(Debug)]
pub(crate) struct Held(Option<Opened>);

impl Held {
    /// `None` if enough files are held; this one is closed then.
    fn new(file: Opened, has_earlier: bool) -> Option<Self> {
        static ALL: OnceLock<usize> = OnceLock::new();
        let all = *ALL.get_or_init(|| {
            let soft = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            usize::try_from(soft).unwrap_or(usize::MAX)
        });
        Self::one_of(file, all / if has_earlier { 2 } else { 4 })
    }

    fn one_of(file: Opened, most: usize) -> Option<Self> {
        let held = Self(Some(file));
        (HELD.fetch_add(1, Ordering::Relaxed) < most).then_some(held)
    }

    /// Ends the holding.
    pub(crate) fn take(mut self) -> Option<Opened> {
        self.0.take()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            file.leave();
        }
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What was decided about an item of a batch.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) fate: Fate,
    /// Messages for its turn, if its data was compared with the catalog.
    pub(crate) events: Vec<Event>,
    /// Bytes that were read for that.
    pub(crate) read_bytes: u64,
}

/// See [`Prepared`].
#[derive(Debug)]
pub(crate) enum Fate {
    /// It has no data, or is opened in its turn: opening a fifo or device may take long, or too
    /// many files are open.
    InItsTurn,
    /// It is read from this file.
    Opened(Held),
    /// It exists but can't be opened. It gets a record without data.
    NotOpened(Errno),
    /// It has no data to save, and gets no record: an earlier job may have a copy, which a record
    /// without data would hide, or its storage does not say that it is still there.
    LeftOut(NoData),
    /// Its data is unchanged. Only its attributes are sent, with this digest of the catalog.
    Update(Vec<u8>),
    /// Its data is unchanged, and it is not saved.
    Unchanged,
    /// It no longer exists.
    Gone(Errno),
    /// The item is no entry.
    Nothing,
}

/// Why a file that exists has no data to save.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoData {
    NotOpened(Errno),
    /// Not even its first byte.
    NotRead(Errno),
}

impl Fate {
    /// The fate of an entry that can't be opened.
    fn without_file(errno: Errno, is_there: bool, has_earlier: bool) -> Self {
        match errno {
            // It exists, but may not be read.
            _ if is_there && !has_earlier => Self::NotOpened(errno),
            _ if is_there => Self::LeftOut(NoData::NotOpened(errno)),
            // It or a directory on the way is gone, or was replaced by something else.
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO => Self::Gone(Errno::NOENT),
            _ => Self::LeftOut(NoData::NotOpened(errno)),
        }
    }

    /// Whether the entry gets a record.
    pub(crate) fn has_record(&self) -> bool {
        !matches!(self, Self::Unchanged | Self::LeftOut(_) | Self::Gone(_) | Self::Nothing)
    }
}

impl From<Fate> for Prepared {
    fn from(fate: Fate) -> Self {
        Self { fate, events: Vec::new(), read_bytes: 0 }
    }
}

/// Prepares the entries of batches.
pub(crate) struct Preparer<'p> {
    pub(crate) job: &'p Job,
    pub(crate) digesters: &'p mut Digesters,
    /// Room for a block.
    pub(crate) block: &'p mut Vec<u8>,
    pub(crate) pace: &'p mut Pace,
    pub(crate) meter: &'p mut Meter,
}

impl Preparer<'_> {
    /// Decides about the items of a batch, as far as that does not depend on other batches.
    pub(crate) fn prepare(&mut self, items: &mut [Item], prepared: &mut Vec<Prepared>) -> Result<(), Stopped> {
        prepared.clear();
        for item in items {
            prepared.push(match item {
                Item::Entry(entry) => self.prepare_entry(entry)?,
                _ => Fate::Nothing.into(),
            });
            self.meter.step(self.job);
        }
        Ok(())
    }

    /// Decides about the rest: a later name of an inode is saved as a file of its own if the first
    /// name is not saved. To be called when all earlier batches are prepared.
    pub(crate) fn prepare_links(&mut self, items: &mut [Item], prepared: &mut [Prepared]) -> Result<(), Stopped> {
        for (item, prepared) in items.iter_mut().zip(prepared) {
            let Item::Entry(entry) = item else { continue };
            if let (Some(HardLink::Later { slot, .. }), Fate::InItsTurn) = (&entry.hard_link, &prepared.fate)
                && slot.get() == LinkState::NotSaved
            {
                entry.become_own_file();
                prepared.fate = self.open(entry)?;
            }
        }
        Ok(())
    }

    /// Decides about an entry and opens it.
    pub(crate) fn prepare_entry(&mut self, entry: &mut Entry) -> Result<Prepared, Stopped> {
        let mut prepared = self.compare(entry)?;
        if matches!(prepared.fate, Fate::InItsTurn) {
            prepared.fate = self.open(entry)?;
        }
        Ok(prepared)
    }

    /// Decides about an entry without opening it for the stream: [`Fate::InItsTurn`] if it is to be
    /// saved with its data.
    pub(crate) fn compare(&mut self, entry: &mut Entry) -> Result<Prepared, Stopped> {
        let job = self.job;
        let is_stopped = || job.is_stopped();
        let mut before_each = || self.pace.step(&is_stopped);
        let mut comparer = Comparer {
            list: job.plan.accurate.as_deref(),
            digesters: self.digesters,
            block: self.block,
            before_each: &mut before_each,
            record_len: job.record_len,
            encrypts: job.plan.protection.as_ref().is_some_and(|protection| protection.encryption.is_some()),
            open_limits: job.open_limits(&is_stopped),
        };
        let Some(finding) = comparer.examine(entry)? else { return Ok(Fate::InItsTurn.into()) };
        let Finding { decision, events, read_bytes } = finding;
        let fate = match decision {
            Decision::Save => Fate::InItsTurn,
            Decision::Update(digest) => Fate::Update(digest),
            Decision::Skip => {
                self.job.resolve(entry, LinkState::NotSaved);
                Fate::Unchanged
            }
        };
        Ok(Prepared { fate, events, read_bytes })
    }

    /// Opens the file at the path of an entry. A file that has replaced the walk's is saved as it
    /// is now.
    pub(crate) fn open(&self, entry: &mut Entry) -> Result<Fate, Stopped> {
        if entry.file_type != FileType::Regular || !is_read(entry.file_type, &entry.stat) {
            return Ok(Fate::InItsTurn);
        }
        let begun = Instant::now();
        let job = self.job;
        let has_earlier = job.plan.has_earlier(entry);
        let is_stopped = || job.is_stopped();
        let mut open_limits = job.open_limits(&is_stopped);
        if !has_earlier {
            // Some descriptors will be free in its turn.
            open_limits.descriptor = Duration::ZERO;
        }
        let opened = open_regular(entry, open_limits);
        let is_replaced = |file: &OwnedFd| {
            entry.hard_link.is_some()
                && !matches!(entry.identify(file.as_fd()), Ok((Identity::Unchanged | Identity::Changed, _)))
        };
        match &opened {
            // If it failed in its turn, its record would hide an earlier copy.
            Err(Errno::MFILE | Errno::NFILE) if !has_earlier => return Ok(Fate::InItsTurn),
            Err(_) if job.is_stopped() => return Err(Stopped),
            Ok(file) if !is_replaced(file) => {}
            _ => self.job.stand_alone(entry),
        }
        Ok(match opened {
            Ok(file) => match self.first_read(entry, &file) {
                Err(_) if job.is_stopped() => return Err(Stopped),
                Err(errno) => {
                    job.stand_alone(entry);
                    Fate::LeftOut(NoData::NotRead(errno))
                }
                Ok(cache) => {
                    let opened = Opened { file, spent: begun.elapsed(), cache };
                    Held::new(opened, has_earlier).map_or(Fate::InItsTurn, Fate::Opened)
                }
            },
            Err(Errno::LOOP) if entry.become_link().is_ok() => Fate::InItsTurn,
            Err(errno) => Fate::without_file(errno, entry.handle().is_ok(), has_earlier),
        })
    }

    /// Reads the first byte, where the record of a file that can't be read would hide an earlier
    /// copy: it comes before the data. What has taken the file's place is not touched. Returns what
    /// the page cache had before.
    fn first_read(&self, entry: &Entry, file: &OwnedFd) -> Result<Option<PageCache>, Errno> {
        if !self.job.plan.has_earlier(entry) || entry.stat.size == 0 {
            return Ok(None);
        }
        match fstat(file) {
            Ok(found) if rustix::fs::FileType::from_raw_mode(found.st_mode).is_file() => {
                let cache = PageCache::new(file.as_fd(), u64::try_from(found.st_size).unwrap_or_default());
                retry_on_intr(|| pread(file, &mut [0], 0)).map(|_| Some(cache))
            }
            _ => Ok(None),
        }
    }
}

/// As [`Preparer::prepare_links`], for an entry that is prepared afterwards.
pub(crate) fn prepare_link(entry: &mut Entry) {
    if let Some(HardLink::Later { slot, .. }) = &entry.hard_link
        && slot.get() == LinkState::NotSaved
    {
        entry.become_own_file();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that is gone is no removed file, which a job may end well without.
    #[test]
    fn storage_that_fails_counts_as_unread_and_not_as_gone() {
        for errno in [Errno::IO, Errno::STALE, Errno::TIMEDOUT, Errno::NOTCONN, Errno::ACCESS] {
            for has_earlier in [false, true] {
                let fate = Fate::without_file(errno, false, has_earlier);
                assert!(matches!(fate, Fate::LeftOut(NoData::NotOpened(told)) if told == errno), "{fate:?}");
            }
            assert!(matches!(Fate::without_file(errno, true, false), Fate::NotOpened(told) if told == errno));
            assert!(matches!(Fate::without_file(errno, true, true), Fate::LeftOut(_)));
        }
        for errno in [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NXIO] {
            assert!(matches!(Fate::without_file(errno, false, true), Fate::Gone(Errno::NOENT)), "{errno}");
        }
    }

    #[test]
    fn the_number_of_held_files_is_bounded() {
        let open = || Opened::new(std::fs::File::open("/dev/null").unwrap().into(), Duration::ZERO);
        let held: Vec<_> = (0..3).map(|_| Held::one_of(open(), usize::MAX).unwrap()).collect();
        assert!(Held::one_of(open(), 3).is_none(), "that was one too many");
        assert!(held.into_iter().all(|held| held.take().is_some()));
    }
}
