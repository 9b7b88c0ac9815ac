//! What is decided about an entry before its batch is numbered, and the files that are held open
//! until their turn.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::exchange::piece::Event;
use crate::source::Opened;

/// Number of open files, over all jobs, that are held until their turn.
pub(crate) static HELD: AtomicUsize = AtomicUsize::new(0);

/// A file that is held open until its turn. At most a quarter of the descriptors of the process are
/// used for that, or half of them by files that an earlier job may have: connections and the walk
/// need some, too.
#[derive(Debug)]
pub(crate) struct Held(Option<Opened>);

impl Held {
    /// `None` if enough files are held; this one is closed then.
    pub(crate) fn new(file: Opened, has_earlier: bool) -> Option<Self> {
        static ALL: OnceLock<usize> = OnceLock::new();
        let all = *ALL.get_or_init(|| {
            let soft = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            usize::try_from(soft).unwrap_or(usize::MAX)
        });
        Self::one_of(file, all / if has_earlier { 2 } else { 4 })
    }

    /// A fifo or device, however many are held: the program that writes to it would notice that it
    /// is closed. It is alone in its batch, so a worker holds one at a time.
    pub(crate) fn special(file: Opened) -> Self {
        HELD.fetch_add(1, Ordering::Relaxed);
        Self(Some(file))
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
    pub(crate) fn without_file(errno: Errno, is_there: bool, has_earlier: bool) -> Self {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
