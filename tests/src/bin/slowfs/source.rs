//! The folder that is shown: what the kernel knows of it, by inode number, and what is done there.
//!
//! Of each entry that the kernel remembers its names are kept: descriptors would be too few.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{
    DirEntryExt as _, FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, OpenFlags, RenameFlags, TimeOrNow};
use nix::fcntl::{AT_FDCWD, RenameFlags as Renaming, renameat2};
use nix::libc;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

use crate::faults::{Asked, Faults, Verb};

/// The kernel's number for the folder.
const ROOT: u64 = INodeNo::ROOT.0;
/// Directories above an entry; more would be a circle.
const DEPTH: usize = 4096;

/// A directory's number, and a name in it.
type Name = (u64, Arc<OsStr>);

#[derive(Debug, Default)]
struct Node {
    /// By which the kernel has asked for it; the last one is used.
    names: Vec<Name>,
    /// How often the kernel was told of it, and has not forgotten it.
    lookups: u64,
    /// When it has no name any more, this may still be open.
    open: Weak<File>,
}

/// What is open.
#[derive(Debug, Clone)]
pub(crate) enum Open {
    File(Arc<File>),
    Directory(Arc<Vec<(u64, FileType, OsString)>>),
}

/// The folder that is shown.
#[derive(Debug)]
pub(crate) struct Source {
    root: File,
    device: u64,
    /// How long the kernel may remember.
    pub(crate) cached: Duration,
    pub(crate) faults: Arc<Faults>,
    nodes: Mutex<HashMap<u64, Node>>,
    open: Mutex<HashMap<u64, Open>>,
    next: AtomicU64,
}

/// What `setattr` changes.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) mode: Option<u32>,
    pub(crate) owner: (Option<u32>, Option<u32>),
    pub(crate) size: Option<u64>,
    pub(crate) times: (Option<TimeOrNow>, Option<TimeOrNow>),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl Source {
    pub(crate) fn open(folder: &Path, cached: Duration, faults: Arc<Faults>) -> io::Result<Self> {
        let root = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(folder)?;
        let device = root.metadata()?.dev();
        let (nodes, open) = (Mutex::default(), Mutex::default());
        Ok(Self { root, device, cached, faults, nodes, open, next: AtomicU64::new(1) })
    }

    /// The name by which the kernel last asked for an entry.
    pub(crate) fn name(&self, ino: INodeNo) -> Arc<OsStr> {
        let nodes = locked(&self.nodes);
        let name = nodes.get(&ino.0).and_then(|node| node.names.last());
        name.map_or_else(|| OsStr::new("").into(), |(_, name)| Arc::clone(name))
    }

    /// An entry's path.
    pub(crate) fn path(&self, ino: INodeNo) -> io::Result<PathBuf> {
        let mut names = Vec::new();
        {
            let nodes = locked(&self.nodes);
            let mut at = ino.0;
            while at != ROOT {
                let name = nodes.get(&at).and_then(|node| node.names.last());
                let (parent, name) = name.filter(|_| names.len() < DEPTH).ok_or_else(|| error(libc::ESTALE))?;
                names.push(Arc::clone(name));
                at = *parent;
            }
        }
        // The mount may hide the folder from its path, and not from its descriptor.
        let mut path = PathBuf::from(format!("/proc/self/fd/{}/.", self.root.as_raw_fd()));
        path.extend(names.iter().rev().map(|name| Path::new(&**name)));
        Ok(path)
    }

    /// The path of a name in a directory.
    pub(crate) fn child(&self, parent: INodeNo, name: &OsStr) -> io::Result<PathBuf> {
        let directory = self.path(parent)?;
        let path = directory.join(name);
        let folds = self.faults.has(Verb::Fold, Asked { operation: "lookup", name });
        if folds && fs::symlink_metadata(&path).is_err() {
            for entry in fs::read_dir(&directory)? {
                let other = entry?.file_name();
                if other.eq_ignore_ascii_case(name) {
                    return Ok(directory.join(other));
                }
            }
        }
        Ok(path)
    }

    pub(crate) fn lookup(&self, parent: INodeNo, name: &OsStr) -> io::Result<FileAttr> {
        let path = self.child(parent, name)?;
        let name = path.file_name().unwrap_or(name);
        let status = fs::symlink_metadata(&path)?;
        if status.dev() != self.device {
            // Its numbers could be those of other files.
            return Err(error(libc::EXDEV));
        }
        let mut nodes = locked(&self.nodes);
        let node = nodes.entry(status.ino()).or_default();
        node.lookups += 1;
        if node.names.last().is_none_or(|last| (last.0, &*last.1) != (parent.0, name)) {
            node.rename(None, Some((parent.0, name.into())));
        }
        attributes(&status)
    }

    pub(crate) fn forget(&self, ino: INodeNo, lookups: u64) {
        let mut nodes = locked(&self.nodes);
        if let Some(node) = nodes.get_mut(&ino.0) {
            node.lookups = node.lookups.saturating_sub(lookups);
            if node.lookups == 0 {
                nodes.remove(&ino.0);
            }
        }
    }

    pub(crate) fn attributes(&self, ino: INodeNo) -> io::Result<FileAttr> {
        match self.path(ino).and_then(fs::symlink_metadata) {
            Ok(status) => attributes(&status),
            Err(error) => match locked(&self.nodes).get(&ino.0).and_then(|node| node.open.upgrade()) {
                Some(file) => attributes(&file.metadata()?),
                None => Err(error),
            },
        }
    }

    pub(crate) fn change(&self, ino: INodeNo, changes: &Changes) -> io::Result<FileAttr> {
        let path = self.path(ino)?;
        if changes.owner != (None, None) {
            std::os::unix::fs::lchown(&path, changes.owner.0, changes.owner.1)?;
        }
        if let Some(mode) = changes.mode {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o7777))?;
        }
        if let Some(size) = changes.size {
            OpenOptions::new().write(true).open(&path)?.set_len(size)?;
        }
        if changes.times != (None, None) {
            let (accessed, modified) = (time(changes.times.0)?, time(changes.times.1)?);
            utimensat(AT_FDCWD, &path, &accessed, &modified, UtimensatFlags::NoFollowSymlink)?;
        }
        self.attributes(ino)
    }

    /// A second name of a file.
    pub(crate) fn link(&self, ino: INodeNo, parent: INodeNo, name: &OsStr) -> io::Result<FileAttr> {
        fs::hard_link(self.path(ino)?, self.child(parent, name)?)?;
        self.lookup(parent, name)
    }

    /// Removes a name.
    pub(crate) fn unlink(
        &self,
        parent: INodeNo,
        name: &OsStr,
        remove: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let path = self.child(parent, name)?;
        let gone = fs::symlink_metadata(&path)?.ino();
        remove(&path)?;
        self.rename_node(gone, (parent.0, name), None);
        Ok(())
    }

    pub(crate) fn rename(
        &self,
        (parent, name): (INodeNo, &OsStr),
        (new_parent, new_name): (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> io::Result<()> {
        let (old, new) = (self.child(parent, name)?, self.child(new_parent, new_name)?);
        let moved = fs::symlink_metadata(&old)?.ino();
        let replaced = fs::symlink_metadata(&new).map(|status| status.ino()).ok();
        renameat2(AT_FDCWD, &old, AT_FDCWD, &new, Renaming::from_bits_truncate(flags.bits()))?;
        if let Some(replaced) = replaced {
            let back = flags.contains(RenameFlags::RENAME_EXCHANGE).then(|| (parent.0, name.into()));
            self.rename_node(replaced, (new_parent.0, new_name), back);
        }
        self.rename_node(moved, (parent.0, name), Some((new_parent.0, new_name.into())));
        Ok(())
    }

    fn rename_node(&self, ino: u64, old: (u64, &OsStr), new: Option<Name>) {
        if let Some(node) = locked(&self.nodes).get_mut(&ino) {
            node.rename(Some(old), new);
        }
    }

    fn keep(&self, open: Open) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        locked(&self.open).insert(number, open);
        number
    }

    /// Opens a file that exists.
    pub(crate) fn open_file(&self, ino: INodeNo, flags: OpenFlags) -> io::Result<u64> {
        let file = Arc::new(options(flags.0, libc::O_NOFOLLOW).open(self.path(ino)?)?);
        self.opened(ino.0, &file);
        Ok(self.keep(Open::File(file)))
    }

    fn opened(&self, ino: u64, file: &Arc<File>) {
        if let Some(node) = locked(&self.nodes).get_mut(&ino) {
            node.open = Arc::downgrade(file);
        }
    }

    /// Makes a file and opens it.
    pub(crate) fn create(
        &self,
        (parent, name): (INodeNo, &OsStr),
        mode: u32,
        flags: i32,
        user: (u32, u32),
    ) -> io::Result<(FileAttr, u64)> {
        let path = self.child(parent, name)?;
        let new = libc::O_CREAT | libc::O_NOFOLLOW | (flags & libc::O_EXCL);
        let file = Arc::new(options(flags, new).mode(mode).open(&path)?);
        own(&path, user)?;
        let status = self.lookup(parent, name)?;
        self.opened(status.ino.0, &file);
        Ok((status, self.keep(Open::File(file))))
    }

    /// Reads a directory whole, so that offsets mean the same until it is closed.
    pub(crate) fn open_directory(&self, ino: INodeNo) -> io::Result<u64> {
        let path = self.path(ino)?;
        let above = fs::metadata(path.join(".."))?.ino();
        let mut entries = vec![(ino.0, FileType::Directory, ".".into()), (above, FileType::Directory, "..".into())];
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let kind = kind(entry.file_type()?)?;
            entries.push((entry.ino(), kind, entry.file_name()));
        }
        Ok(self.keep(Open::Directory(Arc::new(entries))))
    }

    pub(crate) fn close(&self, number: u64) {
        let open = locked(&self.open).remove(&number);
        drop(open);
    }

    pub(crate) fn file(&self, number: u64) -> io::Result<Arc<File>> {
        match locked(&self.open).get(&number) {
            Some(Open::File(file)) => Ok(Arc::clone(file)),
            _ => Err(error(libc::EBADF)),
        }
    }

    pub(crate) fn directory(&self, number: u64) -> io::Result<Arc<Vec<(u64, FileType, OsString)>>> {
        match locked(&self.open).get(&number) {
            Some(Open::Directory(entries)) => Ok(Arc::clone(entries)),
            _ => Err(error(libc::EBADF)),
        }
    }

    pub(crate) fn read(&self, ino: INodeNo, number: u64, offset: u64, size: u32) -> io::Result<Vec<u8>> {
        let file = self.file(number)?;
        let mut data = vec![0; usize::try_from(size).unwrap_or(0)];
        let mut filled = 0;
        while let Some(rest) = data.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        data.truncate(filled);
        let name = self.name(ino);
        if self.faults.concern_reads(&name) {
            self.faults.spoil(&name, offset, file.metadata()?.len(), &mut data);
        }
        Ok(data)
    }
}

impl Node {
    /// Takes a name away and adds one, which is the last from now on.
    fn rename(&mut self, old: Option<(u64, &OsStr)>, new: Option<Name>) {
        let added = new.as_ref().map(|new| (new.0, &*new.1));
        self.names.retain(|(parent, name)| {
            let this = Some((*parent, &**name));
            this != old && this != added
        });
        self.names.extend(new);
    }
}

/// Gives something new to who asked for it.
pub(crate) fn own(path: &Path, (user, group): (u32, u32)) -> io::Result<()> {
    if (user, group) == (0, 0) {
        return Ok(());
    }
    std::os::unix::fs::lchown(path, Some(user), Some(group))
}

/// How a file is opened, of what the kernel says: it has looked after links, truncation and
/// appending. `new` is for a file that is made.
fn options(flags: i32, new: i32) -> OpenOptions {
    let access = flags & libc::O_ACCMODE;
    let kept = flags & (libc::O_NOATIME | libc::O_SYNC | libc::O_NONBLOCK);
    let mut options = OpenOptions::new();
    options.read(access != libc::O_WRONLY).write(access != libc::O_RDONLY).custom_flags(kept | new);
    options
}

fn kind(kind: fs::FileType) -> io::Result<FileType> {
    FileType::from_std(kind).ok_or_else(|| error(libc::EIO))
}

fn attributes(status: &Metadata) -> io::Result<FileAttr> {
    let special = status.file_type().is_block_device() || status.file_type().is_char_device();
    let narrow = |number: u64| u32::try_from(number).map_err(|_| error(libc::EOVERFLOW));
    Ok(FileAttr {
        ino: INodeNo(status.ino()),
        size: status.len(),
        blocks: status.blocks(),
        atime: moment(status.atime(), status.atime_nsec())?,
        mtime: moment(status.mtime(), status.mtime_nsec())?,
        ctime: moment(status.ctime(), status.ctime_nsec())?,
        crtime: UNIX_EPOCH,
        kind: kind(status.file_type())?,
        perm: u16::try_from(status.mode() & 0o7777).map_err(|_| error(libc::EOVERFLOW))?,
        nlink: narrow(status.nlink())?,
        uid: status.uid(),
        gid: status.gid(),
        rdev: if special { narrow(status.rdev())? } else { 0 },
        blksize: narrow(status.blksize())?,
        flags: 0,
    })
}

fn moment(seconds: i64, nanoseconds: i64) -> io::Result<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let begun = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    let part = Duration::from_nanos(nanoseconds.unsigned_abs());
    begun.and_then(|begun| begun.checked_add(part)).ok_or_else(|| error(libc::EOVERFLOW))
}

fn time(time: Option<TimeOrNow>) -> io::Result<TimeSpec> {
    Ok(match time {
        None => TimeSpec::UTIME_OMIT,
        Some(TimeOrNow::Now) => TimeSpec::UTIME_NOW,
        Some(TimeOrNow::SpecificTime(moment)) => match moment.duration_since(UNIX_EPOCH) {
            Ok(after) => TimeSpec::from_duration(after),
            Err(before) => {
                // Whole seconds before, and a part of one after that.
                let before = before.duration();
                let up = i64::from(before.subsec_nanos() > 0);
                let seconds = i64::try_from(before.as_secs()).map_err(|_| error(libc::EOVERFLOW))? + up;
                let part = i64::from(before.subsec_nanos());
                TimeSpec::new(-seconds, if part == 0 { 0 } else { 1_000_000_000 - part })
            }
        },
    })
}
