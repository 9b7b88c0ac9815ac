#![no_main]
#![expect(dead_code, reason = "of the program's files only what is fuzzed is called")]
//! The file of snapshots that are to be removed: what is read of it is written as it was.

#[path = "shared/security.rs"]
mod security;
#[path = "../../crates/bacula-fd/src/shared/snapshot_journal.rs"]
#[rustfmt::skip]
mod snapshot_journal;

use libfuzzer_sys::fuzz_target;
use snapshot_journal::{decode, encode};

fuzz_target!(|data: &[u8]| {
    if let Some(snapshots) = decode(data) {
        assert_eq!(decode(&encode(snapshots.iter())), Some(snapshots));
    }
});
