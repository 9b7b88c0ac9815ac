#![no_main]
//! What an S3 server says in place of a listing.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let objects = fd_s3::objects_in(data);
    // Each object has its key, its time and its size.
    assert!(objects.unwrap_or_default() * 20 <= data.len());
});
