//! Changes to a tree, of every kind that an Incremental has to find.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode, RenameFlags, Timespec, Timestamps, XattrFlags, fallocate,
    ioctl_ficlone, mknodat, renameat_with, setxattr, utimensat,
};

use crate::volume::run;

/// Random numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).expect("31 bits") % limit
    }
}

const DIRECTORIES: usize = 6;
const FILES: usize = 40;

/// The first state of a tree.
pub(crate) fn populate(top: &Path) {
    for directory in 0..DIRECTORIES {
        let directory = top.join(format!("d{directory}"));
        fs::create_dir_all(directory.join("e")).expect("directories");
        for number in 0..FILES {
            let path = directory.join(format!("f{number}"));
            match number % 10 {
                7 => symlink("target", path).expect("a link"),
                8 => mknodat(CWD, &path, FileType::Fifo, Mode::from(0o644), 0).expect("a FIFO"),
                9 => fs::hard_link(directory.join("f0"), path).expect("a hard link"),
                _ => fs::write(path, vec![b'x'; number * 300]).expect("a file"),
            }
        }
    }
    fs::write(top.join("disk"), vec![0; 1 << 20]).expect("a file");
    for directory in ["upper", "work", "merged"] {
        fs::create_dir(top.join(directory)).expect("a directory");
    }
    fs::write(top.join("upper/file"), "x").expect("a file");
}

/// Maps files into memory, and writes there: a program, since that isn't safe code.
pub(crate) struct Mapper(Option<(Child, ChildStdin, BufReader<ChildStdout>)>);

const MAPPER: &str = "
import mmap, sys
maps = []
for line in sys.stdin:
    word, path = line.rstrip('\\n').split(' ', 1)
    try:
        if word == 'open':
            f = open(path, 'r+b')
            maps.append((f, mmap.mmap(f.fileno(), 0)))
        elif word == 'write':
            for f, m in maps: m[0] = (m[0] + 1) % 256
        elif word == 'sync':
            for f, m in maps: m[0] = (m[0] + 1) % 256; m.flush()
        else:
            for f, m in maps: m.close(); f.close()
            maps = []
    except (OSError, ValueError): pass
    print(flush=True)
";

impl Mapper {
    pub(crate) fn new() -> Self {
        let started = Command::new("python3").args(["-c", MAPPER]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Self(started.ok().and_then(|mut child| {
            let (input, output) = (child.stdin.take()?, child.stdout.take()?);
            Some((child, input, BufReader::new(output)))
        }))
    }

    pub(crate) const fn works(&self) -> bool {
        self.0.is_some()
    }

    fn ask(&mut self, word: &str, path: &Path) {
        if let Some((_, input, output)) = &mut self.0 {
            writeln!(input, "{word} {}", path.display()).expect("a pipe");
            output.read_line(&mut String::new()).expect("an answer");
        }
    }

    pub(crate) fn close(&mut self) {
        self.ask("close", Path::new("-"));
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        if let Some((mut child, input, _)) = self.0.take() {
            drop(input);
            let _ended = child.wait();
        }
    }
}

/// Changes one tree.
pub(crate) struct Mutator<'m> {
    pub(crate) random: Random,
    pub(crate) top: &'m Path,
    /// A file on another file system.
    pub(crate) other: PathBuf,
    pub(crate) mapper: &'m mut Mapper,
    pub(crate) mounts: Vec<PathBuf>,
}

fn is_file_at(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

fn readable(path: &Path) -> io::Result<File> {
    if is_file_at(path) { File::open(path) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Opening a FIFO would wait.
fn writable(path: &Path) -> io::Result<File> {
    if is_file_at(path) { OpenOptions::new().write(true).open(path) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn change_data(kind: usize, size: u64, file: File) -> io::Result<()> {
    match kind {
        0 => file.write_all_at(b"new", 0),
        1 => file.write_all_at(b"more", size),
        2 => file.set_len(size),
        3 => Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 4096)?),
        _ => Ok(fallocate(file, FallocateFlags::KEEP_SIZE, 0, 65_536 + size)?),
    }
}

fn change_attributes(kind: usize, size: u64, path: &Path) -> io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let now = i64::try_from(now).expect("a time");
    let set_mtime = |seconds| {
        let times = Timestamps {
            last_access: Timespec { tv_sec: seconds, tv_nsec: 0 },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: 5 },
        };
        Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    };
    match kind {
        5 => writable(path)?.set_permissions(Permissions::from_mode(0o600 + u32::from(size.is_multiple_of(2)))),
        6 => chown(path, Some(u32::try_from(size).unwrap_or(0)), None),
        7 => Ok(setxattr(path, "user.a", &size.to_le_bytes(), XattrFlags::empty())?),
        8 => {
            // Version 2; owner, a user, group, mask, others.
            let mut acl = vec![2, 0, 0, 0];
            for (tag, id) in [(1_u16, !0), (2, 1000), (4, !0), (16, !0), (32, !0_u32)] {
                acl.extend(tag.to_le_bytes());
                acl.extend(6_u16.to_le_bytes());
                acl.extend(id.to_le_bytes());
            }
            writable(path)?;
            Ok(setxattr(path, "system.posix_acl_access", &acl, XattrFlags::empty())?)
        }
        9 => set_mtime(now - 1_000_000),
        10 => set_mtime(now + 1_000_000),
        _ => set_mtime(-1_000_000_000),
    }
}

fn change_names(kind: usize, path: &Path, to: &Path) -> io::Result<()> {
    match kind {
        12 | 13 => fs::rename(path, to),
        14 => Ok(renameat_with(CWD, path, CWD, to, RenameFlags::EXCHANGE)?),
        15 => fs::hard_link(path, to),
        _ => fs::remove_file(path),
    }
}

fn put_another_type(kind: usize, size: u64, path: &Path) -> io::Result<()> {
    if kind == 19 {
        return Ok(mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0)?);
    }
    fs::remove_file(path)?;
    if kind == 20 {
        Ok(mknodat(CWD, path, FileType::Socket, Mode::from(0o600), 0)?)
    } else {
        symlink(format!("to {size}"), path)
    }
}

/// A disk that is a file of the tree.
fn write_through_a_loop_device(disk: &Path, size: u64) -> io::Result<()> {
    let found = Command::new("losetup").args(["--find", "--show"]).arg(disk).output()?;
    let device = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let open = OpenOptions::new().write(true).open(&device);
    // It goes when it is closed, also if this process is killed.
    run(&["losetup".as_ref(), "--detach".as_ref(), device.as_ref()]);
    let open = open?;
    open.write_all_at(&size.to_le_bytes(), size / 512 * 512)?;
    open.sync_all()
}

/// Those that do not mount, and move no directory.
pub(crate) const PLAIN: usize = 25;
/// All.
pub(crate) const ALL: usize = 30;

impl Mutator<'_> {
    fn path(&mut self) -> PathBuf {
        let (directory, number) = (self.random.below(DIRECTORIES), self.random.below(FILES + 10));
        let below = if self.random.below(8) == 0 { "e/" } else { "" };
        self.top.join(format!("d{directory}/{below}f{number}"))
    }

    /// One change, and what it was. Most names exist.
    pub(crate) fn change(&mut self, kinds: usize) -> String {
        let kind = self.random.below(kinds);
        let (path, to) = (self.path(), self.path());
        let done = self.apply(kind, &path, &to);
        format!("{kind} {} {} {done:?}", path.display(), to.display())
    }

    fn apply(&mut self, kind: usize, path: &Path, to: &Path) -> io::Result<()> {
        let size = u64::try_from(self.random.below(50_000)).expect("a size");
        match kind {
            0..=4 => change_data(kind, size, writable(path)?),
            5..=11 => change_attributes(kind, size, path),
            12..=16 => change_names(kind, path, to),
            17 => {
                fs::remove_file(path)?;
                fs::write(path, vec![b'y'; usize::try_from(size).unwrap_or(0)])
            }
            18 => Ok(ioctl_ficlone(writable(path)?, readable(to)?)?),
            19..=21 => put_another_type(kind, size, path),
            22 => {
                let word = ["open", "write", "write", "sync"][usize::try_from(size % 4).unwrap_or(0)];
                self.mapper.ask(word, path);
                Ok(())
            }
            23 => {
                fs::write(path.with_extension("new"), "by rename")?;
                fs::rename(path.with_extension("new"), path)
            }
            24 if is_file_at(path) || !path.exists() && !path.is_symlink() => fs::write(path, "anew"),
            24 => Ok(()),
            25 => fs::rename(path.with_file_name("e"), to.with_file_name("g")),
            26 => {
                let other = self.other.clone();
                self.mount(&["--bind".as_ref(), other.as_os_str()], path)
            }
            27 => self.mount(&["--bind".as_ref(), to.as_os_str()], path),
            28 => self.write_through_an_overlay(path),
            _ => write_through_a_loop_device(&self.top.join("disk"), size),
        }
    }

    fn write_through_an_overlay(&mut self, path: &Path) -> io::Result<()> {
        let at = |name: &str| self.top.join(name).display().to_string();
        let options = format!("lowerdir={},upperdir={},workdir={}", at("d0"), at("upper"), at("work"));
        let merged = self.top.join("merged");
        self.mount(&["-t", "overlay", "overlay", "-o", &options].map(OsStr::new), &merged)?;
        let through = merged.join(path.file_name().expect("a name"));
        if is_file_at(&through) {
            fs::write(through, "through the overlay")?;
        }
        fs::write(merged.join("file"), "through the overlay")
    }

    fn mount(&mut self, words: &[&OsStr], at: &Path) -> io::Result<()> {
        let words: Vec<&OsStr> =
            ["mount".as_ref()].into_iter().chain(words.iter().copied()).chain([at.as_os_str()]).collect();
        if !fs::symlink_metadata(at)?.is_symlink() && run(&words) {
            self.mounts.push(at.to_owned());
        }
        Ok(())
    }

    pub(crate) fn unmount(&mut self) {
        while let Some(at) = self.mounts.pop() {
            run(&["umount".as_ref(), at.as_os_str()]);
        }
    }
}
