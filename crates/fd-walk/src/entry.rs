//! One entry of the walk.

use std::borrow::Cow;
use std::sync::Arc;

use fd_fileset::{EffectiveOptions, Flags, strip_path};
use fd_records::{FileType, Stat};

use crate::links::LinkSlot;
use crate::reach::Root;

/// One thing to be saved, counted or verified.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Path as walked, to be used in system calls and messages: a directory's without final slash, but a name of the
    /// FileSet as it was spelled there.
    pub path: Vec<u8>,
    /// Type. Directories are [`FileType::Directory`] whatever kept the walk from entering them.
    pub file_type: FileType,
    /// Attributes from the `lstat` that classified the entry; a directory's from before its contents were read.
    pub stat: Stat,
    /// The parts of the three times below one second.
    pub nanoseconds: Nanoseconds,
    /// Target of a symbolic link, or first name of a hard link; else empty.
    pub link: Vec<u8>,
    /// Role among the names of an inode with several names; `None` if the entry is not tracked.
    pub hard_link: Option<HardLink>,
    /// Options in force.
    pub options: Arc<EffectiveOptions>,
    /// The entry is a name of the FileSet itself.
    pub top_level: bool,
    /// What [`crate::Comparison::Changed`] gave for this entry.
    pub token: Option<u64>,
    /// The directory of the FileSet's name that it was found below, to reach it again.
    pub(crate) root: Option<Arc<Root>>,
}

/// Nanoseconds of the three times, 0 to 999,999,999. Records hold whole seconds only.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Nanoseconds {
    /// Of the last access.
    pub atime: u32,
    /// Of the last change of the contents.
    pub mtime: u32,
    /// Of the last change of the inode.
    pub ctime: u32,
}

/// Role of an entry whose inode has several names.
#[derive(Clone, Debug)]
pub enum HardLink {
    /// The first name met. Whoever saves it tells the slot how that went.
    First(LinkSlot),
    /// A further name; the entry's type is [`FileType::HardLink`] and its `link` the first name.
    Later {
        /// What became of the first name.
        slot: LinkSlot,
        /// The type the entry has for itself: it is saved as that if the first name was not saved.
        own_type: FileType,
    },
}

/// Name and link as they stand in the attribute record (reference 03 §5.3, §5.12).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordNames<'a> {
    /// The name; a directory's with one final slash.
    pub name: Cow<'a, [u8]>,
    /// Target of a symbolic link, first name of a hard link, else empty.
    pub link: Cow<'a, [u8]>,
}

impl Entry {
    /// Name and link for the record: directories with their slash, leading components stripped if the options say so.
    pub fn record_names(&self) -> RecordNames<'_> {
        record_names(&self.path, self.file_type, &self.link, self.options.strip_path)
    }

    /// Name and link as a Verify job tells them: nothing is ever stripped (reference 05 §18.3).
    pub fn whole_names(&self) -> RecordNames<'_> {
        record_names(&self.path, self.file_type, &self.link, 0)
    }
}

/// See [`Entry::record_names`].
pub(crate) fn record_names<'a>(path: &'a [u8], file_type: FileType, link: &'a [u8], strip: u32) -> RecordNames<'a> {
    let directory = file_type == FileType::Directory;
    let name = if directory { Cow::Owned(with_slash(path)) } else { Cow::Borrowed(path) };
    let whole = RecordNames { name, link: Cow::Borrowed(link) };
    if strip == 0 {
        return whole;
    }
    // A directory must have enough components without its final slash; only then is the name with slash stripped.
    let (Some(short_path), Some(short_name)) = (strip_path(path, strip), strip_path(&whole.name, strip)) else {
        return whole;
    };
    match file_type {
        FileType::Directory => RecordNames { name: Cow::Owned(short_name), ..whole },
        FileType::HardLink => match strip_path(link, strip) {
            Some(short_link) => RecordNames { name: Cow::Owned(short_path), link: Cow::Owned(short_link) },
            None => whole,
        },
        _ => RecordNames { name: Cow::Owned(short_path), ..whole },
    }
}

/// `path` with exactly one slash at its end.
pub(crate) fn with_slash(path: &[u8]) -> Vec<u8> {
    let mut name = without_slashes(path).to_vec();
    name.push(b'/');
    name
}

/// `path` without any slash at its end.
pub(crate) fn without_slashes(mut path: &[u8]) -> &[u8] {
    while let [front @ .., b'/'] = path {
        path = front;
    }
    path
}

/// The type of what is no directory, as the record has it.
pub(crate) fn file_type(stat: &Stat, is_top: bool, options: &EffectiveOptions) -> FileType {
    const ALL_MAY_READ: u32 = 0o444;
    match stat.mode_type() {
        Stat::MODE_REGULAR if stat.size == 0 && stat.mode & ALL_MAY_READ == ALL_MAY_READ => FileType::EmptyFile,
        Stat::MODE_REGULAR => FileType::Regular,
        Stat::MODE_SYMLINK => FileType::Symlink,
        Stat::MODE_BLOCK if is_top => FileType::Raw,
        Stat::MODE_FIFO if is_top && options.has(Flags::READ_FIFO) => FileType::Fifo,
        _ => FileType::Special,
    }
}

/// The kernel's numbers in the types of the record.
#[expect(clippy::useless_conversion, reason = "the kernel's types differ between architectures")]
pub(crate) fn convert(found: &rustix::fs::Stat) -> (Stat, Nanoseconds) {
    let nanoseconds = |part: u64| u32::try_from(part).unwrap_or(0);
    let stat = Stat {
        dev: found.st_dev,
        ino: found.st_ino,
        mode: found.st_mode,
        nlink: found.st_nlink.try_into().unwrap_or(u64::MAX),
        uid: found.st_uid,
        gid: found.st_gid,
        rdev: found.st_rdev,
        size: found.st_size,
        blksize: found.st_blksize.try_into().unwrap_or(i64::MAX),
        blocks: found.st_blocks,
        atime: found.st_atime.try_into().unwrap_or(i64::MAX),
        mtime: found.st_mtime.try_into().unwrap_or(i64::MAX),
        ctime: found.st_ctime.try_into().unwrap_or(i64::MAX),
    };
    let fractions = Nanoseconds {
        atime: nanoseconds(found.st_atime_nsec),
        mtime: nanoseconds(found.st_mtime_nsec),
        ctime: nanoseconds(found.st_ctime_nsec),
    };
    (stat, fractions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str, file_type: FileType, link: &str, strip: u32) -> String {
        let names = record_names(path.as_bytes(), file_type, link.as_bytes(), strip);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        if names.link.is_empty() { text(&names.name) } else { text(&names.name) + "->" + &text(&names.link) }
    }

    #[test]
    fn directories_have_one_slash() {
        assert_eq!(names("/t/d", FileType::Directory, "", 0), "/t/d/");
        assert_eq!(names("/t/b//", FileType::Directory, "", 0), "/t/b/");
        assert_eq!(names("/", FileType::Directory, "", 0), "/");
        assert_eq!(names("//a//b", FileType::Directory, "", 0), "//a//b/");
        assert_eq!(names("/t/f", FileType::Regular, "", 0), "/t/f");
    }

    /// The table of reference 03 §5.12: tree `/x/t/{l -> top.x, top.x, d/a.c, d/e/h (hard link)}`.
    #[test]
    fn strip_path_table() {
        let all = |strip| {
            [
                names("/x/t/l", FileType::Symlink, "top.x", strip),
                names("/x/t/top.x", FileType::Regular, "", strip),
                names("/x/t/d/a.c", FileType::Regular, "", strip),
                names("/x/t/d/e/h", FileType::HardLink, "/x/t/d/a.c", strip),
                names("/x/t/d/e", FileType::Directory, "", strip),
                names("/x/t/d", FileType::Directory, "", strip),
                names("/x/t", FileType::Directory, "", strip),
            ]
            .join(" ")
        };
        assert_eq!(all(1), "/t/l->top.x /t/top.x /t/d/a.c /t/d/e/h->/t/d/a.c /t/d/e/ /t/d/ /t/");
        assert_eq!(all(2), "/l->top.x /top.x /d/a.c /d/e/h->/d/a.c /d/e/ /d/ /x/t/");
        assert_eq!(all(3), "/x/t/l->top.x /x/t/top.x /a.c /e/h->/a.c /e/ /x/t/d/ /x/t/");
    }

    #[test]
    fn a_hard_link_is_stripped_with_its_first_name_or_not_at_all() {
        assert_eq!(names("/x/t/d/h", FileType::HardLink, "/x/f", 2), "/x/t/d/h->/x/f");
        assert_eq!(names("/x/t/d/l", FileType::Symlink, "f", 2), "/d/l->f");
    }
}
