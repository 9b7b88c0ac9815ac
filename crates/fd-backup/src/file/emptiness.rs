//! Files that are said to be empty and may not be: some file systems don't know how large a file
//! is. Their data is not saved: the attributes, which come first, would contradict it.

use fd_records::FileType;
use fd_walk::Entry;
use rustix::fs::fstatfs;

/// What it means in a file system that a file has no size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sizes {
    /// It is empty.
    True,
    /// It shows when it is read.
    Asked,
    /// It shows only when it is read, which may change something or take for ever.
    Unknown,
}

impl Sizes {
    /// By the number of the type, as `statfs` gives it.
    const fn of(file_system: u32) -> Self {
        const FUSE: u32 = 0x6573_5546;
        const NINE_P: u32 = 0x0102_1997;
        const PROC: u32 = 0x9fa0;
        const DEBUG: u32 = 0x6462_6720;
        const TRACE: u32 = 0x7472_6163;
        const SECURITY: u32 = 0x7363_6673;
        const CONFIG: u32 = 0x6265_6570;
        const GROUPS: u32 = 0x0027_e0eb;
        const GROUPS_2: u32 = 0x6367_7270;
        const FUSE_CONTROL: u32 = 0x6573_5543;
        const SELINUX: u32 = 0xf97c_ff8c;
        const SMACK: u32 = 0x4341_5d53;
        const APPARMOR: u32 = 0x5a3c_69f0;
        const BINARY_FORMATS: u32 = 0x4249_4e4d;
        const NFS_SERVER: u32 = 0x6e66_7364;
        const RESOURCES: u32 = 0x0765_5821;
        const BPF: u32 = 0xcafe_4a11;
        const XEN: u32 = 0xabba_1974;
        match file_system {
            FUSE | NINE_P => Self::Asked,
            PROC | DEBUG | TRACE | SECURITY | CONFIG | GROUPS | GROUPS_2 | FUSE_CONTROL | SELINUX | SMACK
            | APPARMOR | BINARY_FORMATS | NFS_SERVER | RESOURCES | BPF | XEN => Self::Unknown,
            _ => Self::True,
        }
    }
}

/// Tells files that are empty from others without a size. Files follow each other in few file
/// systems.
#[derive(Default, Debug)]
pub(crate) struct Emptiness {
    last: Option<(u64, Sizes)>,
}

impl Emptiness {
    /// Whether an entry has no size and may have content all the same.
    pub(crate) fn is_doubtful(&mut self, entry: &Entry) -> bool {
        let is_file = matches!(entry.file_type, FileType::Regular | FileType::EmptyFile);
        is_file
            && entry.stat.size == 0
            && match self.sizes(entry) {
                Sizes::True => false,
                Sizes::Asked => !is_empty(entry),
                Sizes::Unknown => true,
            }
    }

    fn sizes(&mut self, entry: &Entry) -> Sizes {
        match self.last {
            Some((dev, sizes)) if dev == entry.stat.dev => sizes,
            _ => {
                let kind = entry.handle().ok().and_then(|handle| fstatfs(handle).ok());
                let Some(kind) = kind.and_then(|found| u32::try_from(found.f_type).ok()) else { return Sizes::True };
                self.last.insert((entry.stat.dev, Sizes::of(kind))).1
            }
        }
    }
}

/// Whether a read finds nothing. One that can't be opened or read may have content.
fn is_empty(entry: &Entry) -> bool {
    entry.open().is_ok_and(|file| rustix::io::read(file, &mut [0]) == Ok(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_systems_without_sizes_are_doubted() {
        let of = |path: &str| Sizes::of(u32::try_from(rustix::fs::statfs(path).unwrap().f_type).unwrap());
        assert_eq!((of("/proc"), of("/tmp")), (Sizes::Unknown, Sizes::True));
    }
}
