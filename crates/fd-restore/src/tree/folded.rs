//! Names that a file system takes for the same, as `Makefile` and `makefile` on vfat or SMB.

use std::os::fd::BorrowedFd;

use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, Mode, fstatat};

use crate::output_file::Identity;

/// The name of what was found in a directory under `name`, if it is another one.
pub(super) fn real_name(directory: BorrowedFd<'_>, name: &[u8], found: &FileStat) -> Option<Vec<u8>> {
    if !takes_for_the_same(directory, name, found) {
        return None;
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut real = None;
    for entry in Dir::openat(directory, ".", flags, Mode::empty()).ok()?.iter() {
        let entry = entry.ok()?;
        let other = entry.file_name().to_bytes();
        if other == name {
            return None;
        }
        if other.eq_ignore_ascii_case(name) || real.is_none() && entry.ino() == found.st_ino {
            real = Some(other.to_vec());
        }
    }
    real
}

/// Whether the same object has also the name with small letters for capital ones, and the other way
/// round. Where names are not folded that is not there, as a rule, so no directory is read. Of a
/// name with other letters this does not tell: one letter may have two forms that are the same.
fn takes_for_the_same(directory: BorrowedFd<'_>, name: &[u8], found: &FileStat) -> bool {
    if !name.is_ascii() {
        return true;
    }
    let swapped: Vec<u8> = name
        .iter()
        .map(|byte| if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() })
        .collect();
    if swapped == name {
        return false;
    }
    fstatat(directory, swapped.as_slice(), AtFlags::AT_SYMLINK_NOFOLLOW)
        .is_ok_and(|other| Identity::of(&other) == Identity::of(found))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd as _;

    use nix::sys::stat::lstat;

    use super::*;

    /// The two hard links stand for a file system that folds names.
    #[test]
    fn what_has_the_name_itself_has_no_other() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("Makefile"), b"").unwrap();
        let handle = File::open(folder.path()).unwrap();
        let found = lstat(&folder.path().join("Makefile")).unwrap();
        assert_eq!(real_name(handle.as_fd(), b"Makefile", &found), None);
        fs::hard_link(folder.path().join("Makefile"), folder.path().join("mAKEFILE")).unwrap();
        assert_eq!(real_name(handle.as_fd(), b"Makefile", &found), None);
        fs::remove_file(folder.path().join("Makefile")).unwrap();
        assert_eq!(real_name(handle.as_fd(), b"Makefile", &found), Some(b"mAKEFILE".to_vec()));
        assert_eq!(real_name(handle.as_fd(), b"1", &found), None);
    }

    /// There are file systems that fold them, too.
    #[test]
    fn names_without_letters_of_ascii_have_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["ОТЧЁТ", "отчёт"];
        fs::write(folder.path().join(first), b"").unwrap();
        let handle = File::open(folder.path()).unwrap();
        let found = lstat(&folder.path().join(first)).unwrap();
        assert_eq!(real_name(handle.as_fd(), second.as_bytes(), &found), Some(first.as_bytes().to_vec()));
        assert_eq!(real_name(handle.as_fd(), first.as_bytes(), &found), None);
    }

    /// As a file system does that takes one letter in two forms for the same, and capital letters
    /// for others.
    #[test]
    fn names_that_differ_in_their_form_only_have_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let [composed, decomposed] = ["caf\u{e9}.txt", "cafe\u{301}.txt"];
        fs::write(folder.path().join(composed), b"").unwrap();
        let handle = File::open(folder.path()).unwrap();
        let found = lstat(&folder.path().join(composed)).unwrap();
        assert_eq!(real_name(handle.as_fd(), decomposed.as_bytes(), &found), Some(composed.as_bytes().to_vec()));
        assert_eq!(real_name(handle.as_fd(), composed.as_bytes(), &found), None);
    }
}
