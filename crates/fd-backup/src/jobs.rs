//! What a caller can have done: a backup, an estimate, a Verify job that looks at the disk.

pub(crate) mod backup;
pub(crate) mod estimate;
pub(crate) mod plan;
pub(crate) mod verify_disk;
