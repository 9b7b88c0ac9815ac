#![no_main]
#![expect(dead_code, reason = "of the program's files only what is fuzzed is called")]
//! The file of finished jobs: it is read, or named as damaged.

#[path = "shared/security.rs"]
mod security;
#[path = "../../crates/bacula-fd/src/shared/state_file.rs"]
#[rustfmt::skip]
mod state_file;
#[path = "../../crates/bacula-fd/src/shortage.rs"]
#[rustfmt::skip]
mod shortage;

use libfuzzer_sys::fuzz_target;
use state_file::{decode, encode};

fuzz_target!(|data: &[u8]| {
    if let Ok(jobs) = decode(data) {
        assert!(jobs.len() <= 10);
        let again = decode(&encode(&jobs)).map(|again| again.len());
        assert_eq!(again, Ok(jobs.len()));
    }
});
