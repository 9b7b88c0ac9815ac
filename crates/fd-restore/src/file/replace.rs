//! Whether a record is restored where something exists already (reference 05 §6.1).

use fd_records::Replace;
use nix::sys::stat::FileStat;

use super::item::RestoreItem;
use crate::output_file::is_unfinished;
use crate::texts::Skip;

/// Why a record is not restored in view of what exists (reference 05 §6.1); `None` if it is.
pub(crate) fn reason_to_skip(item: &RestoreItem, existing: Option<&FileStat>, replace: Replace) -> Option<Skip> {
    match (existing, item.delta_seq) {
        (None, _) if item.is_update => (!item.is_whole()).then_some(Skip::NothingToPatch),
        (None, 1..) => Some(Skip::NothingToPatch),
        // What an earlier restore has left is not the file that its name promises.
        (Some(existing), 0) if !item.is_update && is_unfinished(existing, item.stat.mtime) => None,
        (Some(existing), 0) => {
            let recorded = item.stat.mtime;
            match replace {
                Replace::Always => None,
                Replace::IfNewer => (recorded <= existing.st_mtime).then_some(Skip::NotNewer),
                Replace::IfOlder => (recorded >= existing.st_mtime).then_some(Skip::NotOlder),
                Replace::Never => Some(Skip::Exists),
            }
        }
        _ => None,
    }
}
