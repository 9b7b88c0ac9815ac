#![no_main]
//! One message of the accurate list.

use fd_records::AccurateEntry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(entry) = AccurateEntry::parse(data) else { return };
    assert!(data.starts_with(entry.name) && !entry.lstat_text.is_empty());
    assert!(![entry.name, entry.lstat_text, entry.digest].iter().any(|field| field.contains(&0)));
    let _ = entry.lstat();
});
