//! Which programs run side by side, and in which order they are begun.

use Group::{Alone, Busy, Waits};

/// What a program needs of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Keeps all processors busy by itself.
    Busy,
    /// Mostly waits for daemons.
    Waits,
    /// Measures or loads the host.
    Alone,
}

/// So many of a group at a time; where no busy one is left, its place is for those that wait.
pub(crate) const AT_A_TIME: [(Group, usize); 2] = [(Busy, 1), (Waits, 5)];

/// The longest first, so that the last ones to end are short. What is not here comes after it:
/// suites of the bed wait, everything else is busy.
const TABLE: [(&str, Group); 26] = [
    ("tests/bounds", Waits),
    ("tests/truth", Waits),
    ("tests/s3", Waits),
    ("tests/snapshot_truth", Waits),
    ("tests/compliance", Waits),
    ("tests/hostile_trees", Waits),
    ("tests/transcripts", Waits),
    ("tests/races", Waits),
    ("tests/restore_matrix", Waits),
    ("tests/verify", Waits),
    ("tests/plugins", Waits),
    ("tests/pki", Waits),
    ("tests/hostile_peers", Waits),
    ("tests/connections", Waits),
    ("tests/snapshots", Waits),
    ("tests/odd_directors", Waits),
    ("tests/odd_hosts", Waits),
    ("tests/cancel_and_status", Waits),
    ("tests/stock_faults", Waits),
    ("plugins/s3", Waits),
    ("fd-plugins/library", Waits),
    ("fd-walk/inode_scan", Waits),
    ("fd-transport", Waits),
    ("bacula-fd/bsnapshot", Waits),
    ("bacula-fd/bacula-fd", Waits),
    ("tests/load", Alone),
];

/// The place of a program in the order.
pub(crate) fn place(name: &str) -> usize {
    TABLE.iter().position(|(row, _)| *row == name).unwrap_or(TABLE.len())
}

/// The group of a program.
pub(crate) fn group(name: &str) -> Group {
    let default = if name.starts_with("tests/") { Waits } else { Busy };
    TABLE.iter().find(|(row, _)| *row == name).map_or(default, |(_, group)| *group)
}
