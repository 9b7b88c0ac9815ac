//! What is saved, and what is in its place when it is restored: kinds × situations, one directory
//! (a cell) for each pair, `<situation>/<kind>/x`.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use bed::{Noise, Result, argv, posix_acl, run};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, makedev, mknod, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::mkfifo;

/// When everything that is saved was changed, in seconds.
pub(crate) const SAVED: i64 = 1_600_000_000;
/// How much older or newer what is in its place is.
const AGE: i64 = 1000;
/// In the future, so that reading does not change it.
const ATIME: i64 = 2_064_787_200;

bed::named! {
    /// What is saved, by the names of its cells.
    pub(crate) Kind {
        File = "file", Empty = "empty-file", SetId = "set-id-file", Sparse = "sparse-file", Gzip = "gzip-file",
        Lzo = "lzo-file", Metadata = "acl-and-xattr", Link = "link", AbsoluteLink = "absolute-link",
        HardLink = "hard-link", Fifo = "fifo", Character = "character-device", Block = "block-device",
        Directory = "directory", EmptyDirectory = "empty-directory",
    }
}

impl Kind {
    /// Makes the object that is saved.
    fn make_saved(self, cell: &Path) {
        let x = cell.join("x");
        self.make(&x, b"saved\n");
        match self {
            Self::File => lchown(&x, Some(1001), Some(1002)).unwrap(),
            Self::SetId => {
                chown(&x, Some(1001), Some(1002)).unwrap();
                mode(&x, 0o6755);
            }
            Self::Link => lchown(&x, Some(7), Some(8)).unwrap(),
            Self::Metadata => {
                xattr::set(&x, "user.saved", b"value").unwrap();
                xattr::set(&x, "user.none", b"").unwrap();
                xattr::set(&x, "system.posix_acl_access", &acl()).unwrap();
            }
            Self::HardLink => fs::hard_link(&x, cell.join("y")).unwrap(),
            Self::Directory => {
                let child = x.join("child");
                fs::write(&child, b"child\n").unwrap();
                set_time(&child, SAVED);
                xattr::set(&x, "system.posix_acl_default", &acl()).unwrap();
                xattr::set(&x, "user.saved", b"on a directory").unwrap();
                mode(&x, 0o1777);
            }
            Self::EmptyDirectory => mode(&x, 0o2711),
            _ => {}
        }
        set_time(&x, SAVED);
    }

    /// Makes an object of this kind, in its plainest form.
    fn make(self, x: &Path, content: &[u8]) {
        match self {
            Self::Empty => fs::write(x, b"").unwrap(),
            Self::File | Self::SetId | Self::Metadata | Self::HardLink => fs::write(x, content).unwrap(),
            Self::Gzip | Self::Lzo => fs::write(x, [content, &Noise::new(3).text(150_000)].concat()).unwrap(),
            Self::Sparse => {
                let file = File::create(x).unwrap();
                file.write_all_at(content, 0).unwrap();
                file.write_all_at(&Noise::new(4).bytes(70_000), 600_000).unwrap();
                file.set_len(1_000_000).unwrap();
            }
            Self::Link => symlink("where/it/leads", x).unwrap(),
            Self::AbsoluteLink => symlink("/where/it/leads", x).unwrap(),
            Self::Fifo => mkfifo(x, Mode::from_bits_truncate(0o640)).unwrap(),
            Self::Character => device(x, SFlag::S_IFCHR, 1, 3),
            Self::Block => device(x, SFlag::S_IFBLK, 7, 250),
            Self::Directory | Self::EmptyDirectory => fs::create_dir(x).unwrap(),
        }
    }

    /// Whether the flag "immutable" can be set on it.
    fn takes_flags(self) -> bool {
        !matches!(self, Self::Link | Self::AbsoluteLink | Self::Fifo | Self::Character | Self::Block)
    }
}

bed::named! {
    /// What is in the place, by the names of the directories of its cells.
    pub(crate) Situation {
        // Nothing but the directory; not even that.
        Nothing = "nothing", NoParent = "no-parent",
        // The same.
        Older = "same-but-older", Equal = "same-age", Newer = "same-but-newer",
        // A regular file.
        FileOlder = "older-file", FileNewer = "newer-file",
        EmptyDirectory = "empty-directory", FullDirectory = "full-directory",
        LinkToFile = "link-to-file", LinkToDirectory = "link-to-directory", DanglingLink = "dangling-link",
        Fifo = "fifo", Immutable = "immutable", ImmutableParent = "immutable-parent",
        AppendOnlyParent = "append-only-parent", ReadOnlyMount = "read-only-mount",
        // The cell is a link to a directory elsewhere; the missing cell is below such a link.
        ParentIsLink = "parent-is-link", MissingBelowLink = "missing-below-link",
        ParentIsFile = "parent-is-file", ParentIsDanglingLink = "parent-dangles",
    }
}

impl Situation {
    /// Lays out the cell of a kind below `top`, which exists.
    fn prepare(self, kind: Kind, top: &Path, flagged: &mut Flagged) {
        let cell = top.join(kind.name());
        let x = cell.join("x");
        match self {
            Self::NoParent | Self::MissingBelowLink => return,
            Self::ParentIsFile => {
                fs::write(&cell, b"in the way\n").unwrap();
                return set_time(&cell, SAVED - AGE);
            }
            Self::ParentIsDanglingLink => {
                symlink("no/such/directory", &cell).unwrap();
                return set_time(&cell, SAVED - AGE);
            }
            Self::ParentIsLink => {
                let elsewhere = top.join(format!("elsewhere-{}", kind.name()));
                fs::create_dir(&elsewhere).unwrap();
                symlink(elsewhere.file_name().unwrap(), &cell).unwrap();
                set_time(&elsewhere, SAVED - AGE);
                return set_time(&cell, SAVED - AGE);
            }
            _ => fs::create_dir(&cell).unwrap(),
        }
        match self {
            Self::Older | Self::Immutable if self == Self::Older || kind.takes_flags() => {
                existing(kind, &x, SAVED - AGE);
            }
            Self::Equal => existing(kind, &x, SAVED),
            Self::Newer => existing(kind, &x, SAVED + AGE),
            Self::FileOlder | Self::Immutable | Self::ReadOnlyMount => existing(Kind::File, &x, SAVED - AGE),
            Self::FileNewer => existing(Kind::File, &x, SAVED + AGE),
            Self::EmptyDirectory => existing(Kind::EmptyDirectory, &x, SAVED - AGE),
            Self::FullDirectory => {
                fs::create_dir(&x).unwrap();
                existing(Kind::File, &x.join("inside"), SAVED - AGE);
                set_time(&x, SAVED - AGE);
            }
            Self::LinkToFile | Self::LinkToDirectory | Self::DanglingLink => {
                let victim = cell.join("victim");
                match self {
                    Self::LinkToFile => existing(Kind::File, &victim, SAVED - AGE),
                    Self::LinkToDirectory => existing(Kind::EmptyDirectory, &victim, SAVED - AGE),
                    _ => {}
                }
                symlink("victim", &x).unwrap();
                set_time(&x, SAVED - AGE);
            }
            Self::Fifo => existing(Kind::Fifo, &x, SAVED - AGE),
            _ => {}
        }
        if kind == Kind::HardLink && self != Self::FullDirectory && x.is_file() && !x.is_symlink() {
            // The second name has a file of its own in its place.
            existing(Kind::File, &cell.join("y"), fs::metadata(&x).unwrap().modified().map_or(0, seconds));
        }
        set_time(&cell, SAVED - AGE);
        match self {
            Self::Immutable => flagged.immutable.push(x),
            Self::ImmutableParent => flagged.immutable.push(cell),
            Self::AppendOnlyParent => flagged.append_only.push(cell),
            _ => {}
        }
    }
}

fn seconds(time: std::time::SystemTime) -> i64 {
    time.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap())
}

/// Something that a restore finds in its place, with marks of its own.
fn existing(kind: Kind, x: &Path, time: i64) {
    kind.make(x, b"in place\n");
    if !x.is_symlink() {
        mode(x, 0o600);
    }
    if kind.takes_flags() {
        xattr::set(x, "user.in-place", b"before").unwrap();
    }
    lchown(x, Some(70), Some(80)).unwrap();
    set_time(x, time);
}

/// Objects with inode flags, which have to go before their folder can.
#[derive(Debug, Default)]
pub(crate) struct Flagged {
    immutable: Vec<PathBuf>,
    append_only: Vec<PathBuf>,
}

impl Flagged {
    fn chattr(&self, sign: &str) -> Result<()> {
        for (flag, paths) in [("i", &self.immutable), ("a", &self.append_only)] {
            // Many at once; too many for one command line.
            for some in paths.chunks(200) {
                let words = ["chattr".into(), format!("{sign}{flag}").into()];
                let done =
                    run(&argv(words.into_iter().chain(some.iter().map(|path| path.clone().into_os_string()))), b"")?;
                let told = String::from_utf8_lossy(&done.stderr).into_owned();
                assert!(done.status.success(), "chattr {sign}{flag}: {told}");
            }
        }
        Ok(())
    }
}

impl Drop for Flagged {
    fn drop(&mut self) {
        let _ = self.chattr("-");
    }
}

/// Lays out what is saved.
pub(crate) fn build_source(source: &Path) {
    for situation in Situation::ALL {
        let top = source.join(situation.name());
        for kind in Kind::ALL {
            let cell = top.join(kind.name());
            fs::create_dir_all(&cell).unwrap();
            kind.make_saved(&cell);
            set_time(&cell, SAVED);
        }
        set_time(&top, SAVED);
    }
    set_time(source, SAVED);
}

/// Lays out what a restore finds at `top`; [`freeze`] sets flags, and has the mounts of `frozen` be
/// read-only.
pub(crate) fn build_target(top: &Path, flagged: &mut Flagged, frozen: &mut Vec<PathBuf>) -> Result<()> {
    for situation in Situation::ALL {
        let here = top.join(situation.name());
        if situation == Situation::MissingBelowLink {
            fs::create_dir_all(top.join("elsewhere")).unwrap();
            symlink("elsewhere", &here).unwrap();
        } else {
            fs::create_dir_all(&here).unwrap();
        }
        if situation == Situation::ReadOnlyMount {
            bed::mount_memory(&here)?;
            frozen.push(here.clone());
        }
        for kind in Kind::ALL {
            situation.prepare(kind, &here, flagged);
        }
        set_time(&here, SAVED - AGE);
    }
    set_time(&top.join("elsewhere"), SAVED - AGE);
    set_time(top, SAVED - AGE);
    Ok(())
}

/// Makes everything ready for the restores.
pub(crate) fn freeze(flagged: &Flagged, frozen: &[PathBuf]) -> Result<()> {
    flagged.chattr("+")?;
    for point in frozen {
        let words = ["mount", "-o", "remount,ro"].map(AsRef::as_ref);
        assert!(run(&argv(words.into_iter().chain([point.as_os_str()])), b"")?.status.success());
    }
    Ok(())
}

fn device(path: &Path, kind: SFlag, major: u64, minor: u64) {
    mknod(path, kind, Mode::from_bits_truncate(0o600), makedev(major, minor)).unwrap();
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

/// Times that do not depend on the clock. The nanoseconds are there to be lost by a restore.
pub(crate) fn set_time(path: &Path, modified: i64) {
    let (atime, mtime) = (TimeSpec::new(ATIME, 5), TimeSpec::new(modified, 123_456_789));
    utimensat(AT_FDCWD, path, &atime, &mtime, UtimensatFlags::NoFollowSymlink).unwrap();
}

/// An access list with a named user and a mask.
fn acl() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    posix_acl(&[(1, 6, NOBODY), (2, 6, 1234), (4, 4, NOBODY), (0x10, 6, NOBODY), (0x20, 4, NOBODY)])
}

/// The Options blocks that save some kinds in a stream of their own.
pub(crate) fn file_set(source: &Path) -> bed::FileSet {
    let common = ["Signature = MD5", "AclSupport = yes", "XattrSupport = yes"].map(str::to_owned);
    let mut lines = vec!["Include {".to_owned()];
    for (kind, option) in
        [(Kind::Sparse, "Sparse = yes"), (Kind::Gzip, "Compression = GZIP"), (Kind::Lzo, "Compression = LZO")]
    {
        lines.push("Options {".to_owned());
        lines.extend(common.clone());
        lines.push(option.to_owned());
        lines.push(format!("WildFile = \"*/{}/x\"", kind.name()));
        lines.push("}".to_owned());
    }
    lines.push("Options {".to_owned());
    lines.extend(common);
    lines.push("}".to_owned());
    lines.push(format!("File = \"{}\"", String::from_utf8_lossy(source.as_os_str().as_bytes())));
    lines.push("}".to_owned());
    bed::FileSet { name: "cells".to_owned(), lines }
}
