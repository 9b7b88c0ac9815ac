//! The kernel's operations: each waits, then is done in the source, then answered.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::sys::statvfs::{Statvfs, statvfs};
use nix::unistd::{Whence, lseek64};

use crate::faults::{Asked, Faults, Verb};
use crate::source::{Changes, Source, own};
use crate::timer::Timer;

/// Requests that the kernel sends without waiting for each, as reading ahead.
const BACKGROUND: u16 = 4096;

/// The file system.
#[derive(Debug)]
pub(crate) struct SlowFs {
    source: Arc<Source>,
    timer: Arc<Timer>,
    faults: Arc<Faults>,
}

/// What an answer is given through.
trait Answer: Send + 'static {
    type Value;
    fn give(self, value: Self::Value);
    fn refuse(self, error: Errno);
}

macro_rules! answer {
    ($reply:ty, $value:ty, |$this:ident, $given:pat_param| $give:expr) => {
        impl Answer for $reply {
            type Value = $value;
            fn give(self, value: $value) {
                let ($this, $given) = (self, value);
                $give
            }
            fn refuse(self, error: Errno) {
                self.error(error);
            }
        }
    };
}

answer!(ReplyEntry, (Duration, FileAttr), |this, (cached, status)| this.entry(&cached, &status, Generation(0)));
answer!(ReplyAttr, (Duration, FileAttr), |this, (cached, status)| this.attr(&cached, &status));
answer!(ReplyEmpty, (), |this, ()| this.ok());
answer!(ReplyData, Vec<u8>, |this, data| this.data(&data));
answer!(ReplyOpen, (u64, FopenFlags), |this, (number, flags)| this.opened(FileHandle(number), flags));
answer!(ReplyWrite, u32, |this, count| this.written(count));
answer!(ReplyLseek, i64, |this, place| this.offset(place));
answer!(ReplyCreate, (Duration, FileAttr, u64), |this, (cached, status, number)| {
    this.created(&cached, &status, Generation(0), FileHandle(number), FopenFlags::empty());
});
answer!(ReplyXattr, Sized, |this, value| match value {
    Sized::Length(length) => this.size(length),
    Sized::Value(bytes) => this.data(&bytes),
});
answer!(ReplyStatfs, Statvfs, |this, all| {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let (blocks, free, available) = (all.blocks(), all.blocks_free(), all.blocks_available());
    let (size, part) = (narrow(all.block_size()), narrow(all.fragment_size()));
    this.statfs(blocks, free, available, all.files(), all.files_free(), size, narrow(all.name_max()), part);
});
answer!(ReplyDirectory, Entries, |this, entries| {
    let mut this = this;
    for (offset, (ino, kind, name)) in entries.rest() {
        if this.add(INodeNo(*ino), offset, *kind, name) {
            break;
        }
    }
    this.ok();
});

/// A directory's entries, and how many the kernel has already.
struct Entries {
    all: Arc<Vec<(u64, FileType, OsString)>>,
    had: u64,
}

impl Entries {
    /// The entries that are left, each with the number of those up to it.
    fn rest(&self) -> impl Iterator<Item = (u64, &(u64, FileType, OsString))> {
        let had = usize::try_from(self.had).unwrap_or(usize::MAX);
        (1..).zip(self.all.iter()).skip(had)
    }
}

/// What a fault's word is compared with for an attribute of a file.
fn attribute(file: &OsStr, name: &OsStr) -> OsString {
    [file, OsStr::new("@"), name].into_iter().collect()
}

/// The value of an extended attribute, or its length for who asks for that first.
enum Sized {
    Length(u32),
    Value(Vec<u8>),
}

impl Sized {
    fn new(value: Vec<u8>, room: u32) -> io::Result<Self> {
        let length = u32::try_from(value.len()).map_err(io::Error::other)?;
        match room {
            0 => Ok(Self::Length(length)),
            room if room < length => Err(io::Error::from_raw_os_error(libc::ERANGE)),
            _ => Ok(Self::Value(value)),
        }
    }
}

impl SlowFs {
    pub(crate) fn new(source: Arc<Source>, timer: Arc<Timer>, faults: Arc<Faults>) -> Self {
        Self { source, timer, faults }
    }

    /// Does and answers an operation when its time has come, as far as no fault prevents it.
    fn later<A: Answer>(
        &self,
        operation: &'static str,
        name: &OsStr,
        reply: A,
        work: impl FnOnce(&Source) -> io::Result<A::Value> + Send + 'static,
    ) {
        let asked = Asked { operation, name };
        let fails = [(Verb::Error, libc::EIO), (Verb::Unsupported, libc::ENOTSUP)];
        let fails = fails.into_iter().find(|(verb, _)| self.faults.has(*verb, asked));
        let source = Arc::clone(&self.source);
        let job = Box::new(move || {
            let done = match fails {
                Some((_, errno)) => Err(io::Error::from_raw_os_error(errno)),
                None => work(&source),
            };
            match done {
                Ok(value) => reply.give(value),
                Err(error) => reply.refuse(error.into()),
            }
        });
        if let Some(job) = self.faults.admit(asked, job) {
            self.timer.after_the_delay(job);
        }
    }

    /// The same for an entry that the kernel knows by its number.
    fn later_for<A: Answer>(
        &self,
        operation: &'static str,
        ino: INodeNo,
        reply: A,
        work: impl FnOnce(&Source) -> io::Result<A::Value> + Send + 'static,
    ) {
        self.later(operation, &self.source.name(ino), reply, work);
    }

    /// The same for something new.
    fn make(
        &self,
        operation: &'static str,
        (parent, name): (INodeNo, &OsStr),
        (request, reply): (&Request, ReplyEntry),
        work: impl FnOnce(&Path) -> io::Result<()> + Send + 'static,
    ) {
        let (new, user) = (name.to_owned(), (request.uid(), request.gid()));
        self.later(operation, name, reply, move |source| {
            let path = source.child(parent, &new)?;
            work(&path)?;
            own(&path, user)?;
            Ok((source.cached, source.lookup(parent, &new)?))
        });
    }
}

impl Filesystem for SlowFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = InitFlags::FUSE_PARALLEL_DIROPS | InitFlags::FUSE_BIG_WRITES | InitFlags::FUSE_AUTO_INVAL_DATA;
        let lacks = |flags| io::Error::other(format!("the kernel has no {flags:?}"));
        config.add_capabilities(wanted).map_err(lacks)?;
        if !self.source.cached.is_zero() {
            config.add_capabilities(InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_ASYNC_READ).map_err(lacks)?;
        }
        let few = |_| io::Error::other("the kernel refuses so many requests");
        config.set_max_background(BACKGROUND).map_err(few)?;
        config.set_congestion_threshold(BACKGROUND).map_err(few)?;
        config.set_max_write(1 << 20).map(drop).map_err(|_| io::Error::other("the kernel refuses large writes"))
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let owned = name.to_owned();
        self.later("lookup", name, reply, move |source| Ok((source.cached, source.lookup(parent, &owned)?)));
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        self.source.forget(ino, lookups);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.later_for("getattr", ino, reply, move |source| Ok((source.cached, source.attributes(ino)?)));
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = Changes { mode, owner: (uid, gid), size, times: (atime, mtime) };
        self.later_for("setattr", ino, reply, move |source| Ok((source.cached, source.change(ino, &changes)?)));
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.later_for("readlink", ino, reply, move |source| {
            Ok(fs::read_link(source.path(ino)?)?.into_os_string().into_encoded_bytes())
        });
    }

    fn mknod(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, rdev: u32, reply: ReplyEntry) {
        self.make("mknod", (parent, name), (request, reply), move |path| {
            let (kind, rights) = (SFlag::from_bits_truncate(mode), Mode::from_bits_truncate(mode));
            Ok(mknod(path, kind & SFlag::S_IFMT, rights, rdev.into())?)
        });
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        self.make("mkdir", (parent, name), (request, reply), move |path| {
            Ok(nix::unistd::mkdir(path, Mode::from_bits_truncate(mode))?)
        });
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.to_owned();
        self.make("symlink", (parent, name), (request, reply), move |path| std::os::unix::fs::symlink(target, path));
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let owned = name.to_owned();
        self.later("link", name, reply, move |source| Ok((source.cached, source.link(ino, parent, &owned)?)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let owned = name.to_owned();
        self.later("unlink", name, reply, move |source| source.unlink(parent, &owned, |path| fs::remove_file(path)));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let owned = name.to_owned();
        self.later("rmdir", name, reply, move |source| source.unlink(parent, &owned, |path| fs::remove_dir(path)));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (old, new) = (name.to_owned(), newname.to_owned());
        self.later("rename", name, reply, move |source| source.rename((parent, &old), (newparent, &new), flags));
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.later_for("open", ino, reply, move |source| {
            let direct = source.faults.concern_reads(&source.name(ino));
            let how = if direct { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::empty() };
            Ok((source.open_file(ino, flags)?, how))
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (new, user) = (name.to_owned(), (request.uid(), request.gid()));
        self.later("create", name, reply, move |source| {
            let (status, number) = source.create((parent, &new), mode, flags, user)?;
            Ok((source.cached, status, number))
        });
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        open: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.later_for("read", ino, reply, move |source| source.read(ino, open.0, offset, size));
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        open: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let taken = self.faults.taken(&self.source.name(ino), data.len());
        let data = data.get(..taken).unwrap_or_default().to_vec();
        self.later_for("write", ino, reply, move |source| {
            source.file(open.0)?.write_all_at(&data, offset)?;
            u32::try_from(data.len()).map_err(io::Error::other)
        });
    }

    fn flush(&self, _: &Request, ino: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.later_for("flush", ino, reply, |_| Ok(()));
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        open: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.later_for("release", ino, reply, move |source| {
            source.close(open.0);
            Ok(())
        });
    }

    fn fsync(&self, _: &Request, ino: INodeNo, open: FileHandle, datasync: bool, reply: ReplyEmpty) {
        self.later_for("fsync", ino, reply, move |source| {
            let file = source.file(open.0)?;
            if datasync { file.sync_data() } else { file.sync_all() }
        });
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.later_for("opendir", ino, reply, move |source| Ok((source.open_directory(ino)?, FopenFlags::empty())));
    }

    fn readdir(&self, _: &Request, ino: INodeNo, open: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.later_for("readdir", ino, reply, move |source| {
            Ok(Entries { all: source.directory(open.0)?, had: offset })
        });
    }

    fn readdirplus(&self, _: &Request, ino: INodeNo, open: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        let reply = Plus { reply, source: Arc::clone(&self.source), directory: ino };
        self.later_for("readdir", ino, reply, move |source| {
            Ok(Entries { all: source.directory(open.0)?, had: offset })
        });
    }

    fn releasedir(&self, _: &Request, ino: INodeNo, open: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.later_for("releasedir", ino, reply, move |source| {
            source.close(open.0);
            Ok(())
        });
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.later_for("fsyncdir", ino, reply, move |source| fs::File::open(source.path(ino)?)?.sync_all());
    }

    fn statfs(&self, _: &Request, ino: INodeNo, reply: ReplyStatfs) {
        self.later_for("statfs", ino, reply, move |source| Ok(statvfs(&source.path(ino)?)?));
    }

    fn setxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, value: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        let (name, value) = (name.to_owned(), value.to_vec());
        let asked = attribute(&self.source.name(ino), &name);
        self.later("setxattr", &asked, reply, move |source| xattr::set(source.path(ino)?, name, &value));
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        let asked = attribute(&self.source.name(ino), &name);
        self.later("getxattr", &asked, reply, move |source| {
            let value = xattr::get(source.path(ino)?, name)?;
            Sized::new(value.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODATA))?, size)
        });
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.later_for("listxattr", ino, reply, move |source| {
            let mut names = Vec::new();
            for name in xattr::list(source.path(ino)?)? {
                names.extend_from_slice(name.as_bytes());
                names.push(0);
            }
            Sized::new(names, size)
        });
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.later_for("removexattr", ino, reply, move |source| xattr::remove(source.path(ino)?, name));
    }

    fn access(&self, _: &Request, ino: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        self.later_for("access", ino, reply, |_| Ok(()));
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        open: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.later_for("fallocate", ino, reply, move |source| {
            let (offset, length) = (offset.cast_signed(), length.cast_signed());
            Ok(fallocate(source.file(open.0)?, FallocateFlags::from_bits_truncate(mode), offset, length)?)
        });
    }

    fn lseek(&self, _: &Request, ino: INodeNo, open: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        self.later_for("lseek", ino, reply, move |source| {
            let whence = if whence == libc::SEEK_HOLE { Whence::SeekHole } else { Whence::SeekData };
            Ok(lseek64(source.file(open.0)?, offset, whence)?)
        });
    }
}

/// Entries with their attributes.
struct Plus {
    reply: ReplyDirectoryPlus,
    source: Arc<Source>,
    directory: INodeNo,
}

impl Answer for Plus {
    type Value = Entries;

    fn give(mut self, entries: Entries) {
        for (offset, (ino, _, name)) in entries.rest() {
            // What goes meanwhile is left out. The kernel does not count the two dots as looked up.
            let dots = name == "." || name == "..";
            let found =
                if dots { self.source.attributes(self.directory) } else { self.source.lookup(self.directory, name) };
            let Ok(status) = found else { continue };
            if self.reply.add(INodeNo(*ino), offset, name, &self.source.cached, &status, Generation(0)) {
                if !dots {
                    self.source.forget(status.ino, 1);
                }
                break;
            }
        }
        self.reply.ok();
    }

    fn refuse(self, error: Errno) {
        self.reply.error(error);
    }
}
