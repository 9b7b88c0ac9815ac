//! Decides about each entry of a batch before the batch is numbered: the Storage Daemon takes no
//! gaps, so an entry that has vanished since the walk must not have a FileIndex.
//!
//! Files are opened here, and compared where only their data decides. Open files are held until
//! their turn. Not here: reading them for the stream.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use fd_crypto::Digesters;
use fd_records::FileType;
use fd_walk::{Entry, HardLink, Identity, LinkState};
use rustix::fs::fstat;
use rustix::io::{Errno, pread, retry_on_intr};

use crate::exchange::Stopped;
use crate::exchange::pace::Pace;
use crate::file::compare::Comparer;
use crate::file::fate::{Fate, Held, NoData, Prepared};
use crate::shared::batch::Item;
use crate::shared::job::Job;
use crate::shared::meter::Meter;
use crate::source::kinds::is_read;
use crate::source::page_cache::PageCache;
use crate::source::{Opened, open_regular, open_special};

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
            if let (Item::Entry(entry), Fate::InItsTurn) = (item, &prepared.fate)
                && prepare_link(entry)
            {
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
        let prepared = comparer.examine(entry)?;
        if matches!(prepared.fate, Fate::Unchanged) {
            self.job.resolve(entry, LinkState::NotSaved);
        }
        Ok(prepared)
    }

    /// Opens the file at the path of an entry. A file that has replaced the walk's is saved as it
    /// is now.
    pub(crate) fn open(&self, entry: &mut Entry) -> Result<Fate, Stopped> {
        if !is_read(entry.file_type, &entry.stat) {
            return Ok(Fate::InItsTurn);
        }
        if entry.file_type != FileType::Regular {
            return self.open_special(entry);
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

    /// Opens a fifo or device where its record without data would hide an earlier copy. That may
    /// take long, and later batches wait for it, so in other jobs it is opened in its turn.
    fn open_special(&self, entry: &mut Entry) -> Result<Fate, Stopped> {
        let job = self.job;
        if !job.plan.has_earlier(entry) {
            return Ok(Fate::InItsTurn);
        }
        let begun = Instant::now();
        let is_stopped = || job.is_stopped();
        match open_special(entry, job.open_limits(&is_stopped)) {
            Ok(file) => Ok(Fate::Opened(Held::special(Opened::new(file, begun.elapsed())))),
            Err(_) if job.is_stopped() => Err(Stopped),
            Err(errno) => {
                job.stand_alone(entry);
                Ok(Fate::without_file(errno, entry.handle().is_ok(), true))
            }
        }
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

/// Makes a later name of an inode a file of its own if the first name is not saved. Whether it is
/// one now.
pub(crate) fn prepare_link(entry: &mut Entry) -> bool {
    let is_alone = matches!(&entry.hard_link, Some(HardLink::Later { slot, .. }) if slot.get() == LinkState::NotSaved);
    if is_alone {
        entry.become_own_file();
    }
    is_alone
}
