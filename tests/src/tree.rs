//! Builds trees to be saved: one with every kind of file that Linux has, and one with many plain
//! files. The same call gives the same tree; only inode numbers and change times are new.
//!
//! All access times are in the future: Linux's `relatime` then leaves them alone when files are
//! read, so two backups of one tree send the same attributes.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, makedev, mknod, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat, geteuid, mkfifo};

use crate::error::{BedError, Result};

/// The largest piece that the daemons read at once; files just below, at and above it are the
/// interesting ones.
const NETWORK_BUFFER: usize = 65536;

/// 2035-06-07: later than any change time, so `relatime` has no reason to set it.
const ATIME: i64 = 2_064_787_200;
/// 2023-11-14: the first entry's modification time; each later entry is a day and some nanoseconds
/// older.
const MTIME: i64 = 1_700_000_000;

/// What a tree holds beyond what every user may make everywhere.
#[derive(Debug, Clone, Copy)]
pub struct TreeOptions {
    /// Length in bytes of the longest absolute path, at most 4095. A restore below another
    /// directory makes it longer.
    pub longest_path: usize,
    /// Bytes of the largest file.
    pub large_file: usize,
}

impl Default for TreeOptions {
    /// Leaves room for `where=` in front of the longest path.
    fn default() -> Self {
        Self { longest_path: 3900, large_file: 5_000_003 }
    }
}

/// Pseudo-random bytes that are the same on every run (splitmix64).
#[derive(Debug, Clone)]
pub struct Noise(u64);

impl Noise {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.number() % (limit as u64)).unwrap_or(0)
    }

    /// So many bytes that do not compress.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    /// So many bytes of words, which compress well.
    pub fn text(&mut self, count: usize) -> Vec<u8> {
        const WORDS: [&[u8]; 8] =
            [b"backup ", b"restore ", b"volume ", b"job\n", b"the ", b"catalog ", b"of ", b"pool "];
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend_from_slice(WORDS.get(self.below(WORDS.len())).copied().unwrap_or_default());
        }
        bytes.truncate(count);
        bytes
    }
}

/// A tree that is being made: remembers its entries so that their times can be set last.
struct Builder {
    base: PathBuf,
    entries: Vec<PathBuf>,
    noise: Noise,
}

/// Makes a tree with every type of file below `base` (created when missing). What only root may
/// make (devices, other owners, `trusted.` attributes) is left out for others.
pub fn build_every_type(base: &Path, options: &TreeOptions) -> Result<()> {
    let mut tree = Builder::new(base, 1)?;
    tree.regular_files(options)?;
    tree.directories_and_links()?;
    tree.special_files()?;
    tree.odd_names()?;
    tree.long_path(options.longest_path)?;
    tree.sparse_files()?;
    tree.modes_and_owners()?;
    tree.acls_and_attributes()?;
    tree.set_times()
}

/// Makes `files` plain files of up to `largest` bytes, some in words and some noise, in a tree of
/// directories.
pub fn build_many_files(base: &Path, seed: u64, files: usize, largest: usize) -> Result<()> {
    let mut tree = Builder::new(base, seed)?;
    for number in 0..files {
        // Twenty files in a directory, twenty directories in a directory.
        let directory = format!("{}/{}", number / 400, number / 20 % 20);
        if number % 400 == 0 {
            tree.directory((number / 400).to_string())?;
        }
        if number % 20 == 0 {
            tree.directory(&directory)?;
        }
        let size = tree.noise.below(largest + 1);
        let content = if number % 2 == 0 { tree.noise.text(size) } else { tree.noise.bytes(size) };
        tree.file(format!("{directory}/file-{number:06}"), &content)?;
    }
    tree.set_times()
}

impl Builder {
    fn new(base: &Path, seed: u64) -> Result<Self> {
        fs::create_dir_all(base).map_err(BedError::file("create", base))?;
        Ok(Self { base: base.to_owned(), entries: vec![base.to_owned()], noise: Noise::new(seed) })
    }

    /// Notes an entry and gives its full path.
    fn add(&mut self, name: impl AsRef<OsStr>) -> PathBuf {
        let path = self.base.join(name.as_ref());
        self.entries.push(path.clone());
        path
    }

    fn file(&mut self, name: impl AsRef<OsStr>, content: &[u8]) -> Result<PathBuf> {
        let path = self.add(name);
        fs::write(&path, content).map_err(BedError::file("write", &path))?;
        mode(&path, 0o644)?;
        Ok(path)
    }

    fn directory(&mut self, name: impl AsRef<OsStr>) -> Result<PathBuf> {
        let path = self.add(name);
        fs::create_dir(&path).map_err(BedError::file("create", &path))?;
        mode(&path, 0o755)?;
        Ok(path)
    }

    fn link(&mut self, name: &str, target: impl AsRef<OsStr>) -> Result<()> {
        let path = self.add(name);
        symlink(target.as_ref(), &path).map_err(BedError::file("link", &path))
    }

    fn regular_files(&mut self, options: &TreeOptions) -> Result<()> {
        self.directory("regular")?;
        self.file("regular/empty-readable", b"")?;
        let secret = self.file("regular/empty-private", b"")?;
        mode(&secret, 0o600)?;
        self.file("regular/small", b"a few bytes\n")?;
        let sizes = [1, NETWORK_BUFFER - 1, NETWORK_BUFFER, NETWORK_BUFFER + 1, 2 * NETWORK_BUFFER, options.large_file];
        for size in sizes {
            let content = self.noise.bytes(size);
            self.file(format!("regular/noise-{size}"), &content)?;
        }
        let content = self.noise.text(300_000);
        self.file("regular/words", &content)?;
        self.file("regular/zeros", &vec![0; 200_000])?;
        Ok(())
    }

    fn directories_and_links(&mut self) -> Result<()> {
        self.directory("empty-directory")?;
        for name in ["nested", "nested/one", "nested/one/two", "nested/one/two/three"] {
            self.directory(name)?;
        }
        self.file("nested/one/two/three/leaf", b"deep\n")?;
        self.directory("links")?;
        self.link("links/dangling", "no/such/thing")?;
        self.link("links/to-directory", "../nested")?;
        self.link("links/to-file", "../regular/small")?;
        self.link("links/absolute", "/no/such/thing")?;
        self.link("links/odd-target", OsStr::from_bytes(b"new\nline \xff target"))?;
        // Not every file system takes the longest target that Linux has.
        if self.link("links/longest-target", "t/".repeat(2047)).is_err() {
            self.entries.pop();
            self.link("links/longest-target", "t/".repeat(500))?;
        }
        let content = self.noise.bytes(70_000);
        let first = self.file("links/hard-one", &content)?;
        let pairs = [(first.clone(), "links/hard-two"), (first, "nested/one/hard-three")];
        for (from, name) in pairs {
            let path = self.add(name);
            fs::hard_link(&from, &path).map_err(BedError::file("link", &path))?;
        }
        Ok(())
    }

    fn special_files(&mut self) -> Result<()> {
        self.directory("special")?;
        let fifo = self.add("special/fifo");
        mkfifo(&fifo, Mode::from_bits_truncate(0o640)).map_err(BedError::file_errno("create", &fifo))?;
        mode(&fifo, 0o640)?;
        self.node("special/socket", SFlag::S_IFSOCK, 0)?;
        if geteuid().is_root() {
            self.node("special/character-device", SFlag::S_IFCHR, makedev(1, 3))?;
            self.node("special/block-device", SFlag::S_IFBLK, makedev(7, 250))?;
            // A number that needs more than the 16 bits of old, and not more than XFS takes.
            self.node("special/large-device-number", SFlag::S_IFCHR, makedev(500, 200_000))?;
        }
        Ok(())
    }

    /// A container may forbid to make devices; the tree then does without.
    fn node(&mut self, name: &str, kind: SFlag, device: u64) -> Result<()> {
        let path = self.base.join(name);
        match mknod(&path, kind, Mode::from_bits_truncate(0o600), device) {
            Ok(()) => self.entries.push(path),
            Err(Errno::EPERM) if kind != SFlag::S_IFSOCK => {}
            Err(errno) => return Err(BedError::file_errno("create", &path)(errno)),
        }
        Ok(())
    }

    fn odd_names(&mut self) -> Result<()> {
        self.directory("names")?;
        let names: [&[u8]; 14] = [
            b"with space",
            b" leading and trailing ",
            b"new\nline",
            b"tab\there",
            b"\x01\x02\x1f\x7f",
            b"invalid utf-8 \xff\xfe\x80",
            "gr\u{fc}n \u{2603} \u{1f600}".as_bytes(),
            b"quote\"and'apostrophe",
            b"back\\slash",
            b"*?[a]{b}",
            b"-rf",
            b"#comment;semi=colon",
            b"percent%d%s%n",
            b".hidden",
        ];
        for name in names {
            self.file([b"names/", name].concat().into_string(), name)?;
        }
        self.directory(b"names/dir with\nnewline \xff".to_vec().into_string())?;
        self.file(b"names/dir with\nnewline \xff/inside".to_vec().into_string(), b"inside\n")?;
        self.file(format!("names/{}", "n".repeat(255)), b"longest name\n")?;
        Ok(())
    }

    fn long_path(&mut self, length: usize) -> Result<()> {
        self.directory("long")?;
        let mut name = OsString::from("long");
        let used = |tree: &Self, name: &OsString| tree.base.as_os_str().len() + 1 + name.len();
        // Directories until a name of 1 to 201 bytes fills it up exactly.
        while used(self, &name) + 202 < length {
            name.push("/");
            name.push("d".repeat(200));
            self.directory(&name)?;
        }
        let rest = length.saturating_sub(used(self, &name) + 1).max(1);
        name.push("/");
        name.push("f".repeat(rest));
        self.file(&name, b"at the end of a long path\n")?;
        Ok(())
    }

    fn sparse_files(&mut self) -> Result<()> {
        self.directory("sparse")?;
        let block = self.noise.bytes(4096);
        // Data at the given offsets, a hole elsewhere, also at the end.
        let plans: [(&str, &[u64], u64); 4] = [
            ("sparse/only-hole", &[], 1_000_000),
            ("sparse/hole-first", &[524_288], 528_384),
            ("sparse/hole-middle", &[0, 1_048_576], 1_052_672),
            ("sparse/hole-last", &[0], 2_000_000),
        ];
        for (name, offsets, size) in plans {
            let path = self.file(name, b"")?;
            let file = File::options().write(true).open(&path).map_err(BedError::file("open", &path))?;
            for &offset in offsets {
                std::os::unix::fs::FileExt::write_all_at(&file, &block, offset)
                    .map_err(BedError::file("write", &path))?;
            }
            file.set_len(size).map_err(BedError::file("lengthen", &path))?;
        }
        Ok(())
    }

    fn modes_and_owners(&mut self) -> Result<()> {
        self.directory("modes")?;
        for bits in [0o000, 0o400, 0o777, 0o1644, 0o2755, 0o4755, 0o6711] {
            let path = self.file(format!("modes/file-{bits:04o}"), b"#!/bin/sh\n")?;
            if geteuid().is_root() || bits & 0o444 != 0 {
                mode(&path, bits)?;
            }
        }
        for bits in [0o500, 0o1777, 0o2775] {
            let path = self.directory(format!("modes/dir-{bits:04o}"))?;
            mode(&path, bits)?;
        }
        if geteuid().is_root() {
            let owned = |tree: &mut Self, name: &str, uid: u32, gid: u32| -> Result<()> {
                let path = tree.file(name, b"owned\n")?;
                // Changing the owner drops set-id bits, so the mode comes after it.
                owner(&path, uid, gid)?;
                mode(&path, 0o6755)
            };
            owned(self, "modes/owner-named", 1, 2)?;
            owned(self, "modes/owner-unknown", 123_456, 654_321)?;
            owned(self, "modes/owner-large", u32::MAX - 1, u32::MAX - 1)?;
            self.link("modes/link-owned", "owner-named")?;
            owner(&self.base.join("modes/link-owned"), 7, 8)?;
        }
        Ok(())
    }

    fn acls_and_attributes(&mut self) -> Result<()> {
        self.directory("attributes")?;
        let file = self.file("attributes/user", b"attributes\n")?;
        attribute(&file, "user.one", b"value1")?;
        attribute(&file, "user.empty", b"")?;
        attribute(&file, "user.binary", &(0..=255).collect::<Vec<u8>>())?;
        let directory = self.directory("attributes/directory")?;
        attribute(&directory, "user.on-directory", b"yes")?;
        let access = self.file("attributes/access-acl", b"acl\n")?;
        attribute(&access, "system.posix_acl_access", &acl(&[(USER, 1), (USER, 123_456), (GROUP, 2)]))?;
        let both = self.file("attributes/acl-and-attribute", b"both\n")?;
        attribute(&both, "user.too", b"both")?;
        attribute(&both, "system.posix_acl_access", &acl(&[(GROUP, 7)]))?;
        let defaults = self.directory("attributes/default-acl")?;
        attribute(&defaults, "system.posix_acl_access", &acl(&[(USER, 1)]))?;
        attribute(&defaults, "system.posix_acl_default", &acl(&[(USER, 1), (GROUP, 7)]))?;
        if geteuid().is_root() {
            attribute(&file, "trusted.secret", b"root only")?;
            self.link("attributes/link", "user")?;
            attribute(&self.base.join("attributes/link"), "trusted.on-link", b"of the link itself")?;
        }
        Ok(())
    }

    /// Sets all times, contents before their directories (setting one changes the other).
    fn set_times(self) -> Result<()> {
        for (number, path) in self.entries.iter().enumerate().rev() {
            let age = i64::try_from(number).unwrap_or(0);
            let mtime = TimeSpec::new(MTIME - age * 86_400, (age * 1_234_567 + 1) % 1_000_000_000);
            let atime = TimeSpec::new(ATIME + age, 987_654_321);
            utimensat(AT_FDCWD, path, &atime, &mtime, UtimensatFlags::NoFollowSymlink)
                .map_err(BedError::file_errno("set times of", path))?;
        }
        Ok(())
    }
}

/// Gives an entry the times that it has in a built tree: done to the directory above built trees,
/// it makes that one independent of the clock too.
pub fn set_fixed_times(path: &Path) -> Result<()> {
    Builder { base: path.to_owned(), entries: vec![path.to_owned()], noise: Noise::new(0) }.set_times()
}

/// Gives everything that was changed between two times, in seconds, one time, so that two runs can
/// be compared. The access time is later: `relatime` does not set it when somebody reads the tree.
pub fn level_times(top: &Path, between: (i64, i64)) -> Result<()> {
    const MODIFIED: (i64, i64) = (4_000_000_000, 0);
    const READ: (i64, i64) = (4_000_000_001, 0);
    let status = fs::symlink_metadata(top).map_err(BedError::file("look at", top))?;
    if status.is_dir() {
        for entry in fs::read_dir(top).map_err(BedError::file("list", top))? {
            level_times(&entry.map_err(BedError::file("list", top))?.path(), between)?;
        }
    }
    let level = |time: (i64, i64), to| if (between.0..=between.1).contains(&time.0) { to } else { time };
    let atime = level((status.atime(), status.atime_nsec()), READ);
    let mtime = level((status.mtime(), status.mtime_nsec()), MODIFIED);
    let spec = |time: (i64, i64)| TimeSpec::new(time.0, time.1);
    // What is on a read-only mount was not changed.
    let _ = utimensat(AT_FDCWD, top, &spec(atime), &spec(mtime), UtimensatFlags::NoFollowSymlink);
    Ok(())
}

/// Bytes to a file name.
trait IntoName {
    fn into_string(self) -> OsString;
}

impl IntoName for Vec<u8> {
    fn into_string(self) -> OsString {
        OsString::from_vec(self)
    }
}

fn mode(path: &Path, bits: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).map_err(BedError::file("change mode of", path))
}

fn owner(path: &Path, uid: u32, gid: u32) -> Result<()> {
    let flags = nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW;
    fchownat(AT_FDCWD, path, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)), flags)
        .map_err(BedError::file_errno("change owner of", path))
}

fn attribute(path: &Path, name: &str, value: &[u8]) -> Result<()> {
    xattr::set(path, name, value).map_err(BedError::file("set an attribute of", path))
}

/// Tags of the kernel's binary ACL form.
const USER: u16 = 0x02;
const GROUP: u16 = 0x08;

/// `system.posix_acl_*` with the given users and groups allowed to read and write.
fn acl(entries: &[(u16, u32)]) -> Vec<u8> {
    const USER_OBJ: u16 = 0x01;
    const GROUP_OBJ: u16 = 0x04;
    const MASK: u16 = 0x10;
    const OTHER: u16 = 0x20;
    const NOBODY: u32 = u32::MAX;
    let mut list: Vec<(u16, u16, u32)> =
        vec![(USER_OBJ, 6, NOBODY), (GROUP_OBJ, 4, NOBODY), (MASK, 6, NOBODY), (OTHER, 4, NOBODY)];
    list.extend(entries.iter().map(|&(tag, id)| (tag, 6, id)));
    list.sort_unstable_by_key(|&(tag, _, id)| (tag, id));
    posix_acl(&list)
}

/// An ACL in the kernel's binary form (version 2): tag, permissions and number of each entry.
pub fn posix_acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}
