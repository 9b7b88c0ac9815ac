//! The file that is being written.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

use fd_messages::CancelToken;
use fd_metadata::{AttributeFailures, Target, UsualOwner};
use fd_os::file_system::is_local;
use fd_records::{MetadataKind, Stat};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat};
use nix::unistd::{close, geteuid};

use crate::texts::FailedWrite;

/// Mode of a new file until it has that of its record: private, and marked. The sticky bit means
/// nothing at a file, and stays with one that is never finished, even if the daemon is killed.
const UNFINISHED: Mode = Mode::S_ISVTX.union(Mode::S_IRUSR).union(Mode::S_IWUSR);

/// Whether this is a file that a restore of this user has begun and never finished. A record with
/// that very mode has also this time of change, in seconds.
pub(crate) fn is_unfinished(found: &FileStat, recorded: i64) -> bool {
    found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits()
        && is_mode_of_unfinished(found)
        && found.st_uid == geteuid().as_raw()
        && found.st_nlink == 1
        && found.st_mtime != recorded
}

/// A default ACL may have taken rights of the owner away.
fn is_mode_of_unfinished(found: &FileStat) -> bool {
    let mode = Mode::from_bits_truncate(found.st_mode);
    mode.contains(Mode::S_ISVTX) && UNFINISHED.contains(mode)
}

/// Makes a file that does not exist, with this access: unfinished, and without an ACL that its
/// directory gives to new files.
fn make_unfinished(directory: BorrowedFd<'_>, name: &[u8], access: OFlag) -> Result<OwnedFd, Errno> {
    let flags = access | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = openat(directory, name, flags, UNFINISHED)?;
    Target::Open(file.as_fd()).drop_inherited_acl()?;
    Ok(file)
}

/// Which file it is: device and inode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    pub(crate) const fn of(stat: &FileStat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }

    pub(crate) const fn device(self) -> u64 {
        self.0
    }
}

/// A file that was just made: which one it is, and when it was made by the clock of its storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewFile {
    pub(crate) identity: Identity,
    pub(crate) made: (i64, i64),
}

impl NewFile {
    fn of(stat: &FileStat) -> Self {
        Self { identity: Identity::of(stat), made: (stat.st_ctime, stat.st_ctime_nsec) }
    }
}

/// Bytes that are read at a time.
const READ: usize = 256 * 1024;

/// Zeros that are written at a time.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// An open file and where the next data goes.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    /// Where the next write goes.
    address: u64,
    /// Bytes written so far.
    written: u64,
    /// Writes so far.
    writes: u64,
    /// The end of what was written; `None` if the file may hold more.
    end: Option<u64>,
    is_readable: bool,
    /// Which file it is, if that was asked when it was made.
    new_file: Option<NewFile>,
    /// Its data could not be written before, and comes a second time.
    is_second_try: bool,
    /// The job, for a file that may block for long: then it is opened without blocking.
    patience: Option<CancelToken>,
}

/// A file that has all of its data, and its attributes as a rule.
#[derive(Debug)]
pub(crate) struct FinishedFile {
    /// Open where it is still needed; if not, closing it may have failed.
    file: Result<File, Option<Errno>>,
    /// How long it is.
    pub(crate) length: Option<i64>,
    /// Which file it is, if that was asked when it was made.
    pub(crate) new_file: Option<NewFile>,
    /// What of its attributes could not be set. `None`: nothing was set yet, and it is private.
    failures: Option<AttributeFailures>,
}

impl FinishedFile {
    /// Its descriptor; `None` if it is closed.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().ok().map(AsFd::as_fd)
    }

    /// Gives it its attributes, if it has none yet. Returns what could not be set.
    pub(crate) fn set_attributes(&self, stat: &Stat, usual: &mut UsualOwner) -> AttributeFailures {
        let set_now = || self.descriptor().map(|file| Target::Open(file).set_attributes_of_new(stat, usual));
        self.failures.or_else(set_now).unwrap_or_default()
    }

    /// Closes it, as [`OutputFile::close`].
    pub(crate) fn close(self) -> Result<(), Errno> {
        match self.file {
            Ok(file) => close(file),
            Err(failed) => failed.map_or(Ok(()), Err),
        }
    }
}

/// How often a job that waits for the reader of a fifo checks whether it was canceled, in
/// milliseconds.
const LOOK: u8 = 100;

impl OutputFile {
    /// A file that was just made, so it is empty. `is_readable`: whether it is open for reading,
    /// too.
    pub(crate) fn empty(file: OwnedFd, is_readable: bool) -> Self {
        Self { end: Some(0), is_readable, ..Self::existing(file) }
    }

    /// Makes a file that does not exist, for writing and, if that is wanted and permitted, for
    /// reading. `is_asked`: it is asked which one it is.
    pub(crate) fn make(
        directory: BorrowedFd<'_>,
        name: &[u8],
        to_be_read: bool,
        is_asked: bool,
    ) -> Result<Self, Errno> {
        let (file, is_readable) = match to_be_read.then(|| make_unfinished(directory, name, OFlag::O_RDWR)) {
            // A security module may permit writing only.
            None | Some(Err(Errno::EACCES | Errno::EPERM)) => {
                (make_unfinished(directory, name, OFlag::O_WRONLY)?, false)
            }
            Some(made) => (made?, true),
        };
        let new_file = if is_asked { fstat(&file).ok().as_ref().map(NewFile::of) } else { None };
        Ok(Self { new_file, ..Self::empty(file, is_readable) })
    }

    /// Which file it is, if that was asked when it was made.
    pub(crate) const fn new_file(&self) -> Option<NewFile> {
        self.new_file
    }

    /// A file or device that may contain data already.
    pub(crate) fn existing(file: OwnedFd) -> Self {
        Self {
            file: File::from(file),
            address: 0,
            written: 0,
            writes: 0,
            end: None,
            is_readable: false,
            new_file: None,
            is_second_try: false,
            patience: None,
        }
    }

    /// Gives it owner, mode and times once its data has come. Returns what could not be set.
    pub(crate) fn set_attributes(&self, stat: &Stat, usual: &mut UsualOwner) -> AttributeFailures {
        let target = Target::Open(self.descriptor());
        if self.is_new() { target.set_attributes_of_new(stat, usual) } else { target.set_attributes(stat) }
    }

    /// Fills a new file, and sets its attributes. It is closed unless it gets metadata; with an ACL
    /// it stays private until that comes, too, since the mode gives the group what is the mask's.
    /// Where it can't be filled the error is the file, which is empty again.
    pub(crate) fn fill(
        mut self,
        data: &[u8],
        stat: &Stat,
        usual: &mut UsualOwner,
        behind: Option<MetadataKind>,
    ) -> Result<FinishedFile, Self> {
        if self.write(data).is_err() || self.flush().is_err() {
            let _length = self.file.set_len(0);
            let _start = self.file.rewind();
            return Err(Self { address: 0, written: 0, writes: 0, end: Some(0), is_second_try: true, ..self });
        }
        let failures = (behind != Some(MetadataKind::Acl)).then(|| self.set_attributes(stat, usual));
        let file = if behind.is_none() { Err(close(self.file).err()) } else { Ok(self.file) };
        Ok(FinishedFile { file, length: i64::try_from(self.written).ok(), new_file: self.new_file, failures })
    }

    /// Has a file system that writes data only when a file is closed, as one over a network, write
    /// it now: while the file is private, and its times don't say that it is whole. An error means
    /// that data may not have come to the storage. It happens with each descriptor that is closed.
    pub(crate) fn flush(&self) -> Result<(), Errno> {
        if self.writes == 0 || self.patience.is_some() {
            return Ok(());
        }
        close(self.file.try_clone().map_err(|error| errno_of(&error))?)
    }

    /// Whether its data could not be written before, and comes a second time.
    pub(crate) const fn is_second_try(&self) -> bool {
        self.is_second_try
    }

    /// Closes it. An error is that of [`OutputFile::flush`].
    pub(crate) fn close(self) -> Result<(), Errno> {
        close(self.file)
    }

    /// It is whole, and keeps the mode of a new file, unless its plugin has given it another one.
    pub(crate) fn finish(&self) -> Result<(), Errno> {
        if !self.is_new() || !is_mode_of_unfinished(&fstat(&self.file)?) {
            return Ok(());
        }
        fchmod(&self.file, UNFINISHED.difference(Mode::S_ISVTX))
    }

    /// A patch has broken off, so the file is not whole any more. If it is another user's, it stays
    /// as it is; its error has been reported.
    pub(crate) fn mark_unfinished(&self) {
        let _not_ours = fchmod(&self.file, UNFINISHED);
    }

    /// A device or fifo that does not block: a write waits until it accepts data or the job is
    /// canceled.
    pub(crate) fn waiting(file: OwnedFd, cancel: &CancelToken) -> Self {
        Self { patience: Some(cancel.clone()), ..Self::existing(file) }
    }

    /// Waits until it may accept data. `false`: the job is canceled.
    fn wait(&self) -> bool {
        let Some(cancel) = &self.patience else { return false };
        let mut polled = [PollFd::new(self.descriptor(), PollFlags::POLLOUT)];
        while !cancel.is_canceled() {
            match poll(&mut polled, PollTimeout::from(LOOK)) {
                Ok(0) | Err(Errno::EINTR) => {}
                // The next write reports what is wrong with it.
                _ => return true,
            }
        }
        false
    }

    /// Whether the job made it, so that all that is in it was written.
    pub(crate) const fn is_new(&self) -> bool {
        self.end.is_some()
    }

    /// The end of what was written, if the job made it.
    pub(crate) const fn end(&self) -> Option<u64> {
        self.end
    }

    /// Its descriptor.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The next write goes to this address.
    pub(crate) fn go_to(&mut self, address: u64) -> Result<(), Errno> {
        if address != self.address {
            self.file.seek(SeekFrom::Start(address)).map_err(|error| errno_of(&error))?;
            self.address = address;
        }
        Ok(())
    }

    /// Where the next write goes.
    pub(crate) const fn address(&self) -> u64 {
        self.address
    }

    /// Writes zeros until the next write goes to this address. Fails with ECANCELED once the job is
    /// canceled.
    pub(crate) fn fill_to(&mut self, address: u64) -> Result<(), FailedWrite> {
        while let Some(left) = address.checked_sub(self.address).filter(|left| *left > 0) {
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
            if self.patience.as_ref().is_some_and(CancelToken::is_canceled) {
                let Self { written, writes: block, .. } = *self;
                return Err(FailedWrite { written, block, length, errno: Errno::ECANCELED });
            }
            self.write(ZEROS.get(..length).unwrap_or_default())?;
        }
        Ok(())
    }

    /// The number of bytes written with this many more, or the end of the file then, whichever is
    /// larger.
    pub(crate) const fn reach_with(&self, more: usize) -> u64 {
        let before = if self.address > self.written { self.address } else { self.written };
        before.saturating_add(more as u64)
    }

    /// Writes all of `data`. Unlike the stock daemon it goes on after a short write, so that a full
    /// disk is reported as such.
    pub(crate) fn write(&mut self, data: &[u8]) -> Result<(), FailedWrite> {
        self.writes += 1;
        let mut rest = data;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(count) if count > 0 => {
                    rest = rest.get(count..).unwrap_or_default();
                    self.written += count as u64;
                    self.address = self.address.saturating_add(count as u64);
                    self.end = self.end.map(|end| end.max(self.address));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && self.wait() => {}
                failed => {
                    let errno = failed.map_or_else(|error| errno_of(&error), |_none| Errno::EIO);
                    return Err(FailedWrite { written: self.written, block: self.writes, length: data.len(), errno });
                }
            }
        }
        Ok(())
    }

    /// Reads the file from its beginning to its end; returns its length. Fails for a file that this
    /// job has not made, since it may contain more than was written, and with ECANCELED once the
    /// job is canceled.
    pub(crate) fn read_again(&self, cancel: &CancelToken, mut take: impl FnMut(&[u8])) -> Result<u64, Errno> {
        if !self.is_new() {
            return Err(Errno::ESPIPE);
        }
        let open = |path| File::open(path).map_err(|error| errno_of(&error));
        let second = if self.is_readable { None } else { Some(open(self.own_path())?) };
        let file = second.as_ref().unwrap_or(&self.file);
        let mut block = vec![0; READ];
        let mut address = 0;
        while !cancel.is_canceled() {
            let count = match file.read_at(&mut block, address) {
                Ok(0) => return Ok(address),
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(errno_of(&error)),
            };
            take(block.get(..count).unwrap_or_default());
            address = address.saturating_add(count as u64);
        }
        Err(Errno::ECANCELED)
    }

    /// Whether the file can be read back at little cost: it is a new one, and the file system keeps
    /// it in this host's page cache for a while.
    pub(crate) fn can_be_read_later(&self) -> bool {
        self.is_readable && is_local(&self.file)
    }

    /// The same file for reading, without an effect on its times.
    pub(crate) fn reader(&self) -> std::io::Result<File> {
        OpenOptions::new().read(true).custom_flags(OFlag::O_NOATIME.bits()).open(self.own_path())
    }

    /// A path that leads to the open file, even if its name means another one by now.
    fn own_path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    /// The length of the file; `None` where it has none.
    pub(crate) fn length(&mut self) -> Option<i64> {
        let end = self.end.or_else(|| self.file.seek(SeekFrom::End(0)).ok())?;
        i64::try_from(end).ok()
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
