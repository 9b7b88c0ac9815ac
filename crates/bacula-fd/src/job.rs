//! What runs: backups, restores, verify jobs, and the programs that run for them.

pub(crate) mod backup;
pub(crate) mod hang_up;
pub(crate) mod job_codes;
pub(crate) mod job_host;
pub(crate) mod late_fileset;
pub(crate) mod matcher;
pub(crate) mod name_lists;
pub(crate) mod outbox;
pub(crate) mod own_thread;
pub(crate) mod packet_check;
pub(crate) mod program;
pub(crate) mod record_feed;
pub(crate) mod restore;
pub(crate) mod runscript;
pub(crate) mod sent_records;
pub(crate) mod signatures;
pub(crate) mod snapshots;
pub(crate) mod verify;
