//! Whether a record is restored where something exists already (reference 05 §6.1).

use fd_records::Replace;
use nix::sys::stat::FileStat;

use super::item::RestoreItem;
use crate::output_file::is_unfinished;
use crate::texts::Skip;
use crate::tree::is_unfinished_directory;

/// Why a record is not restored in view of what exists (reference 05 §6.1); `None` if it is.
/// `is_old` says whether what exists was there before the job: only where a patch or an update
/// would change it.
pub(crate) fn reason_to_skip(
    item: &RestoreItem,
    existing: Option<&FileStat>,
    is_old: bool,
    replace: Replace,
) -> Option<Skip> {
    let Some(existing) = existing else {
        let needs_a_file = if item.is_update { !item.is_whole() } else { item.delta_seq > 0 };
        return needs_a_file.then_some(Skip::NothingToPatch);
    };
    let recorded = item.stat.mtime;
    if changes_what_exists(item) {
        // The file that it belongs to was not restored over this one.
        return if is_old { kept(replace) } else { None };
    }
    // What an earlier restore has left is not the file that its name promises.
    if is_unfinished(existing, recorded) || item.is_directory() && is_unfinished_directory(existing, recorded) {
        return None;
    }
    let is_kept = match replace {
        Replace::Always => false,
        Replace::IfNewer => recorded <= existing.st_mtime,
        Replace::IfOlder => recorded >= existing.st_mtime,
        Replace::Never => true,
    };
    if is_kept { kept(replace) } else { None }
}

/// Whether a record changes a file that another record has made, and makes none.
pub(crate) const fn changes_what_exists(item: &RestoreItem) -> bool {
    item.is_update || item.delta_seq > 0
}

/// Why something is kept in this mode.
const fn kept(replace: Replace) -> Option<Skip> {
    match replace {
        Replace::Always => None,
        Replace::IfNewer => Some(Skip::NotNewer),
        Replace::IfOlder => Some(Skip::NotOlder),
        Replace::Never => Some(Skip::Exists),
    }
}

/// Whether a record is left out because what exists is new. That may be what the job itself had to
/// make on the way to a file.
pub(crate) const fn is_too_new(skip: Skip) -> bool {
    matches!(skip, Skip::NotNewer | Skip::Exists)
}
