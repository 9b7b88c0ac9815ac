//! Names as they appear in records (reference 03 §5.3, §5.12).

use std::borrow::Cow;

use fd_fileset::strip_path;
use fd_records::FileType;

/// Name and link of an attribute record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordNames<'a> {
    /// The name; a directory's with one final slash.
    pub name: Cow<'a, [u8]>,
    /// Target of a symbolic link, first name of a hard link, else empty.
    pub link: Cow<'a, [u8]>,
}

/// Name and link for the record of an entry: see [`crate::Entry::record_names`].
pub(crate) fn record_names<'a>(path: &'a [u8], file_type: FileType, link: &'a [u8], strip: u32) -> RecordNames<'a> {
    let directory = file_type == FileType::Directory;
    let name = if directory { Cow::Owned(with_slash(path)) } else { Cow::Borrowed(path) };
    let whole = RecordNames { name, link: Cow::Borrowed(link) };
    if strip == 0 {
        return whole;
    }
    // A directory needs enough components without its final slash; then the name with the slash is
    // stripped.
    let (Some(short_path), Some(short_name)) = (strip_path(path, strip), strip_path(&whole.name, strip)) else {
        // The first name of a hard link may be stripped all the same, and is restored so.
        let short_link = if file_type == FileType::HardLink { strip_path(link, strip) } else { None };
        return RecordNames { link: short_link.map_or(whole.link, Cow::Owned), ..whole };
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

/// `path` as the record of what is no directory shows it.
pub(crate) fn stripped(path: &[u8], strip: u32) -> Cow<'_, [u8]> {
    strip_path(path, strip).map_or(Cow::Borrowed(path), Cow::Owned)
}

/// The path up to its last slash and with it, and the rest.
pub fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1))
}

/// `path` with exactly one slash at its end.
pub(crate) fn with_slash(path: &[u8]) -> Vec<u8> {
    let mut name = without_slashes(path).to_vec();
    name.push(b'/');
    name
}

/// `path` without any slash at its end.
pub fn without_slashes(mut path: &[u8]) -> &[u8] {
    while let [front @ .., b'/'] = path {
        path = front;
    }
    path
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
    fn a_hard_link_and_its_first_name_are_stripped_together() {
        assert_eq!(names("/x/t/d/h", FileType::HardLink, "/x/f", 2), "/x/t/d/h->/x/f");
        assert_eq!(names("/x/t/d/l", FileType::Symlink, "f", 2), "/d/l->f");
    }

    #[test]
    fn a_hard_link_that_is_not_stripped_leads_to_its_first_name_as_that_is_recorded() {
        assert_eq!(names("/x/h", FileType::HardLink, "/x/t/d/f", 2), "/x/h->/d/f");
        assert_eq!(names("/x/l", FileType::Symlink, "/x/t/d/f", 2), "/x/l->/x/t/d/f");
    }
}
