#![no_main]
//! The record of extended attributes: what is read before the damage writes itself back, byte for
//! byte.

use fd_records::xattr;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut entries = xattr::entries(data);
    let mut written = Vec::new();
    for entry in entries.by_ref() {
        assert!(!entry.name.is_empty() && !entry.name.contains(&0));
        xattr::push(&mut written, entry.name, entry.value);
    }
    assert_eq!(written, data[..data.len() - entries.unread()]);
});
