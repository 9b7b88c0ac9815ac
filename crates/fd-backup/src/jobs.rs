//! What a caller can run: a backup, an estimate, a Verify job that reads the disk.

pub(crate) mod backup;
pub(crate) mod estimate;
pub(crate) mod verify_disk;
