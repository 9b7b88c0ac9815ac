//! The line of a saved file in the style of `ls -l`, for listings and messages.

use fd_messages::one_line;
use fd_metadata::NameCache;
use fd_os::local_time::local_time_of_any;
use fd_records::{FileType, listing};
use fd_walk::Entry;

use crate::accurate::TailRecord;

/// The line of an entry.
pub(crate) fn saved_line(entry: &Entry, names: &mut NameCache) -> Vec<u8> {
    let mut line = Vec::new();
    if entry.file_type == FileType::Deleted {
        listing::push_deleted_line(&mut line, &entry.path);
        return one_line(&[&line]);
    }
    let modified = local_time_of_any(entry.stat.mtime);
    let target = (entry.file_type == FileType::Symlink).then_some(entry.link.as_slice());
    listing::push_line(&mut line, &entry.stat, modified, names, &entry.path, target);
    one_line(&[&line])
}

/// The line of a record of the tail: its name is as in the list, so a directory has its slash, and
/// a link has no target.
pub(crate) fn saved_line_of_tail(record: &TailRecord<'_>, names: &mut NameCache) -> Vec<u8> {
    let mut line = Vec::new();
    if record.file_type == FileType::Deleted {
        listing::push_deleted_line(&mut line, record.path);
    } else {
        let modified = local_time_of_any(record.stat.mtime);
        listing::push_line(&mut line, &record.stat, modified, names, record.path, None);
    }
    one_line(&[&line])
}

#[cfg(test)]
mod tests {
    use fd_records::Stat;

    use super::*;

    #[test]
    fn a_base_file_has_the_line_of_a_saved_one_and_a_deleted_file_its_own() {
        let stat = Stat { mode: 0o40_755, nlink: 2, size: 4096, ..Stat::default() };
        let told = |file_type| {
            let record = TailRecord { path: b"/srv/d/", stat, file_type };
            String::from_utf8(saved_line_of_tail(&record, &mut NameCache::new())).unwrap()
        };
        let base = told(FileType::Base);
        assert!(base.starts_with("drwxr-xr-x   2 root     root                   4096 "), "{base}");
        assert!(base.ends_with("  /srv/d/\n"), "{base}");
        assert!(told(FileType::Deleted).starts_with("-*DELETED-"));
    }
}
