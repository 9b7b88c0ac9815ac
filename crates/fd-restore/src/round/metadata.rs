//! ACLs and extended attributes: what waits for the end of its file, and where it is applied
//! (reference 05 §9.1, §10).

use fd_messages::MessageType;
use fd_metadata::{MetadataWriter, Target, WriterWarnings};
use fd_records::{FileType, MetadataKind, Stat, Stream};
use nix::sys::stat::FileStat;

use crate::file::RestoreItem;
use crate::output_file::Identity;
use crate::report::Report;
use crate::tree::Directories;

use super::made::Made;
use super::named::Named;

/// The most ACL and attribute records that one file may have. A backup writes three.
const MOST_HELD: usize = 64;

/// The most bytes of one kind of metadata that one file may have: what one frame unpacks to. The
/// stock daemon saves so much where the line is compressed (reference 04 §11).
const MOST_HELD_BYTES: usize = 4_000_000;

/// ACLs and extended attributes of the current file, in bounded memory.
#[derive(Default, Debug)]
pub(super) struct HeldMetadata {
    records: Vec<(MetadataKind, Stream, Vec<u8>)>,
    /// There was more than fits; no further record of this file is kept.
    is_full: bool,
}

impl HeldMetadata {
    /// Keeps a record if it fits, and no record after one that does not. `false`: it is the first
    /// one that does not.
    pub(super) fn hold(&mut self, kind: MetadataKind, stream: Stream, record: &[u8]) -> bool {
        if self.is_full {
            return true;
        }
        let others = self.records.iter().filter(|(other, ..)| *other == kind);
        let bytes = others.fold(record.len(), |sum, (.., record)| sum.saturating_add(record.len()));
        self.is_full = bytes > MOST_HELD_BYTES || self.records.len() >= MOST_HELD;
        if !self.is_full {
            self.records.push((kind, stream, record.to_vec()));
        }
        !self.is_full
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// What is held, in its order.
    pub(super) fn records(&self) -> impl Iterator<Item = &(MetadataKind, Stream, Vec<u8>)> {
        self.records.iter()
    }

    /// Applies what is held to a link, to a special file, to a file of which only the attributes
    /// were updated, or to one that a plugin has made.
    pub(super) fn apply_by_name(
        &self,
        directories: &Directories,
        writer: &mut MetadataWriter,
        report: &mut Report<'_>,
        item: &RestoreItem,
        made: &Made,
    ) {
        let found = Named::open(directories, item).and_then(|named| Ok((named.target().stat()?, named)));
        match found {
            Ok((stat, named)) if is_of_record(item, &stat, made) => self.apply(writer, report, item, &named.target()),
            Ok(_another) => {}
            Err(errno) => {
                for (kind, ..) in &self.records {
                    warn(report, writer.no_target(&item.output, *kind, errno));
                }
            }
        }
    }

    /// Applies what is held.
    pub(super) fn apply(
        &self,
        writer: &mut MetadataWriter,
        report: &mut Report<'_>,
        item: &RestoreItem,
        target: &Target<'_>,
    ) {
        for (_, stream, record) in &self.records {
            warn(report, writer.apply(target, &item.output, *stream, record));
        }
    }
}

/// Whether what stands there can be what the record has made.
fn is_of_record(item: &RestoreItem, found: &FileStat, made: &Made) -> bool {
    let stat = &item.stat;
    if let Made::Updated(identity) = made {
        return Identity::of(found) == *identity;
    }
    if item.is_special() {
        let owner = (found.st_uid, found.st_gid, found.st_rdev);
        return found.st_mode & Stat::MODE_TYPE == stat.mode_type() && owner == (stat.uid, stat.gid, stat.rdev);
    }
    let is_link = found.st_mode & Stat::MODE_TYPE == Stat::MODE_SYMLINK;
    is_link == (item.file_type == Some(FileType::Symlink))
}

/// What metadata of a record may be applied to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MetadataTime {
    Now,
    AtClose,
    Never,
}

impl MetadataTime {
    /// When a record of this item is applied.
    pub(super) fn of(item: &RestoreItem, kind: MetadataKind, record: &[u8], made: &Made) -> Self {
        match item.file_type {
            // A name of which `regexwhere` leaves nothing would lead to the daemon's own directory.
            _ if matches!(made, Made::Kept) || item.output.is_empty() => Self::Never,
            Some(FileType::Directory) => Self::Now,
            _ if record.is_empty() => Self::Never,
            // An ACL of a link would land on what it leads to. No backup writes one.
            Some(FileType::Symlink) if kind == MetadataKind::Acl || !made.is_made() => Self::Never,
            Some(FileType::Symlink) => Self::AtClose,
            _ if matches!(made, Made::Open(_) | Made::Waiting) => Self::AtClose,
            // The stock daemon ignores the attributes of an update, and all of a special file that
            // takes no data.
            _ if made.is_made() && (item.is_update || item.is_special()) => Self::AtClose,
            _ => Self::Never,
        }
    }
}

/// Reports what could not be applied.
pub(super) fn warn(report: &mut Report<'_>, warnings: WriterWarnings) {
    for text in warnings.texts {
        if warnings.queued {
            report.later(MessageType::Warning, text);
        } else {
            report.now(MessageType::Warning, &text);
        }
    }
}
