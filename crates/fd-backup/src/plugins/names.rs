//! Which names a plugin may give its files. A restore makes of a name what the kernel makes of it:
//! one with `..` would be the place of another file.

use fd_records::FileType;

/// Most bytes of a part: what file systems take.
const LONGEST_PART: usize = 255;
/// Most bytes of a name, and of what a symbolic link leads to: what the kernel takes.
const LONGEST_NAME: usize = 4095;

/// What is wrong with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameFault {
    Relative,
    Nul,
    Dots,
    EmptyPart,
    LongPart,
    LongName,
    LongTarget,
}

/// The name of a file that may not be, and why. A directory's link is the name in its record, and
/// that of a hard link the name of another file.
pub(crate) fn fault_of_file<'n>(
    command: &[u8],
    file_type: FileType,
    name: &'n [u8],
    link: Option<&'n [u8]>,
) -> Option<(&'n [u8], NameFault)> {
    if file_type == FileType::Symlink && link.is_some_and(|link| link.len() > LONGEST_NAME) {
        return Some((name, NameFault::LongTarget));
    }
    let is_name = file_type.has_directory_name() || file_type == FileType::HardLink;
    let link = link.filter(|link| is_name && !link.is_empty());
    [Some(name), link].into_iter().flatten().find_map(|name| Some((name, fault(command, file_type, name)?)))
}

/// What is wrong with the name of a file of this command, if anything is. Whatever the operator has
/// written as the command's second field, as for `bpipe`, is the name that the operator wants.
fn fault(command: &[u8], file_type: FileType, name: &[u8]) -> Option<NameFault> {
    if command.split(|byte| *byte == b':').nth(1) == Some(name) {
        return None;
    }
    if name.contains(&0) {
        return Some(NameFault::Nul);
    }
    let Some(path) = name.strip_prefix(b"/") else { return Some(NameFault::Relative) };
    if name.len() > LONGEST_NAME {
        return Some(NameFault::LongName);
    }
    let path = if has_slash(file_type) { path.strip_suffix(b"/").unwrap_or(path) } else { path };
    if path.is_empty() && has_slash(file_type) {
        return None;
    }
    path.split(|byte| *byte == b'/').find_map(|part| match part {
        b"" => Some(NameFault::EmptyPart),
        b"." | b".." => Some(NameFault::Dots),
        part if part.len() > LONGEST_PART => Some(NameFault::LongPart),
        _ => None,
    })
}

/// Whether a slash may stand at the name's end.
const fn has_slash(file_type: FileType) -> bool {
    file_type.has_directory_name() || matches!(file_type, FileType::Deleted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_restore_would_put_elsewhere_are_refused() {
        let regular = |name: &[u8]| fault(b"tp:x", FileType::Regular, name);
        for (name, expected) in [
            (b"/@tp/a".as_slice(), None),
            (b"/@tp/...", None),
            (b"a", Some(NameFault::Relative)),
            (b"", Some(NameFault::Relative)),
            (b"/", Some(NameFault::EmptyPart)),
            (b"/a\0b", Some(NameFault::Nul)),
            (b"/a/../b", Some(NameFault::Dots)),
            (b"/a/.", Some(NameFault::Dots)),
            (b"/..", Some(NameFault::Dots)),
            (b"/a//b", Some(NameFault::EmptyPart)),
            (b"/a/", Some(NameFault::EmptyPart)),
        ] {
            assert_eq!(regular(name), expected, "{}", name.escape_ascii());
        }
        let long = |length| regular(&[b"/a/".as_slice(), &vec![b'x'; length]].concat());
        assert_eq!((long(LONGEST_PART), long(LONGEST_PART + 1)), (None, Some(NameFault::LongPart)));
        let deep = |length| regular(&b"/ddd".repeat(length)[..length]);
        assert_eq!((deep(LONGEST_NAME), deep(LONGEST_NAME + 1)), (None, Some(NameFault::LongName)));
        let far = |length| {
            let target = vec![b'x'; length];
            fault_of_file(b"tp:x", FileType::Symlink, b"/a", Some(&target)).map(|(_, fault)| fault)
        };
        assert_eq!((far(LONGEST_NAME), far(LONGEST_NAME + 1)), (None, Some(NameFault::LongTarget)));
    }

    #[test]
    fn a_directory_may_have_its_slash_and_the_operator_s_own_name_any_form() {
        for name in [b"/".as_slice(), b"/a/", b"/a"] {
            assert_eq!(fault(b"tp:x", FileType::Directory, name), None);
        }
        assert_eq!(fault(b"tp:x", FileType::Directory, b"/a//"), Some(NameFault::EmptyPart));
        assert_eq!(fault(b"bpipe:dumps/../db:cat:cat", FileType::Regular, b"dumps/../db"), None);
        assert_eq!(fault(b"bpipe:dumps/db:cat:cat", FileType::Regular, b"dumps"), Some(NameFault::Relative));
    }
}
