//! The files of a job, put together from the records of its volume.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::volume::Record;

/// What an attribute record says of its file (reference 04 §6.1).
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// The type.
    pub kind: &'a str,
    /// The name as it was sent.
    pub path: &'a [u8],
    /// Its `LStat`.
    pub lstat: &'a [u8],
    /// What a symbolic link leads to, or what a hard link is a name of.
    pub target: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// `UNIX_ATTRIBUTES`.
    pub const STREAM: i32 = 1;

    /// Reads the data of a record of that stream.
    pub fn of(data: &'a [u8]) -> Self {
        let mut parts = data.split(|&byte| byte == 0);
        let mut part = || parts.next().unwrap_or_default();
        let (head, lstat, target) = (part(), part(), part());
        let mut words = head.splitn(3, |&byte| byte == b' ').skip(1);
        let kind = words.next().and_then(|kind| std::str::from_utf8(kind).ok()).unwrap_or_default();
        Self { kind, path: words.next().unwrap_or_default(), lstat, target }
    }
}

/// One file on a volume, with what it had of the plain streams.
#[derive(Debug, Default)]
pub struct Saved {
    /// Its type.
    pub kind: String,
    /// Its name, with `?` for what is no text.
    pub name: String,
    /// Its `LStat`.
    pub lstat: Vec<u8>,
    /// What a symbolic link leads to, or what a hard link is a name of.
    pub target: String,
    /// Its data, if that is neither packed nor encrypted.
    pub data: Vec<u8>,
    /// Its MD5.
    pub digest: Vec<u8>,
    /// Its ACLs.
    pub acl: Vec<u8>,
    /// Its extended attributes.
    pub attributes: Vec<u8>,
}

/// The files of a job, by their numbers.
pub fn saved(records: impl Iterator<Item = Result<Record>>) -> Result<BTreeMap<i32, Saved>> {
    let mut files: BTreeMap<i32, Saved> = BTreeMap::new();
    for record in records {
        let Record { file_index, stream, data, .. } = record?;
        let file = files.entry(file_index).or_default();
        match stream {
            Attributes::STREAM => {
                let Attributes { kind, path, lstat, target } = Attributes::of(&data);
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                (file.kind, file.name, file.target) = (kind.to_owned(), text(path), text(target));
                file.lstat = lstat.to_vec();
            }
            2 => file.data.extend(data),
            3 => file.digest = data,
            1007 | 1008 => file.acl.extend(data),
            1998 => file.attributes.extend(data),
            _ => {}
        }
    }
    Ok(files)
}

/// Whether a text is over, or its next word begins.
fn ends(text: &str) -> bool {
    text.is_empty() || text.starts_with(|next: char| next.is_ascii_whitespace())
}

/// Whether a text names the path itself, and not only something below it. The root never is.
pub fn is_named(text: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    !path.is_empty()
        && text.match_indices(path).any(|(at, _)| {
            let rest = text.get(at + path.len()..).unwrap_or_default();
            let rest = rest.strip_prefix('/').unwrap_or(rest);
            // A full stop ends a sentence, or is part of a longer name.
            let rest = rest.strip_prefix('.').filter(|rest| ends(rest)).unwrap_or(rest);
            ends(rest) || rest.starts_with(['"', '\'', ':', ','])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_what_its_records_hold() {
        let record = |file_index, stream, data: &[u8]| {
            Ok(Record { session: (1, 1), file_index, stream, data: data.to_vec(), offset: 0 })
        };
        let records = [
            record(1, 1, b"1 3 /a b\0P4A B\0\0\x30\0"),
            record(1, 2, b"one, "),
            record(1, 2, b"two"),
            record(1, 3, b"digest"),
            record(2, 1, b"2 4 /link\0P4A C\0where\0\x30\0"),
            record(2, 1998, b"user.x"),
        ];
        let files = saved(records.into_iter()).unwrap();
        let (file, link) = (&files[&1], &files[&2]);
        assert_eq!((file.kind.as_str(), file.name.as_str(), file.lstat.as_slice()), ("3", "/a b", &b"P4A B"[..]));
        assert_eq!((file.data.as_slice(), file.digest.as_slice()), (&b"one, two"[..], &b"digest"[..]));
        assert_eq!((link.target.as_str(), link.attributes.as_slice()), ("where", &b"user.x"[..]));
    }

    #[test]
    fn a_path_is_named_and_not_what_begins_with_it() {
        assert!(is_named("can't read /a/b: no", "/a/b/") && is_named("/a/b/: no", "/a/b"));
        assert!(
            is_named("\"/a/b\" is gone", "/a/b") && is_named("no /a/b. Skipped", "/a/b") && is_named("no /a/b", "/a/b")
        );
        let longer = "can't read /a/b-2, /a/bc, /a/b/c, /a/b.tmp, /a/b_2, /a/b/.x: no /a/b//c";
        assert!(!is_named("/: no", "/") && !is_named(longer, "/a/b"));
    }
}
