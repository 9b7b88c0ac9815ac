#![no_main]
//! Keys of a bucket, and the names of their files: each comes back, and no two meet. Keys end with
//! a NUL byte; a byte 0xFE stands for as many letters as the next byte says, so that long parts are
//! found quickly.

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;

fn key(written: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    let mut bytes = written.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            0xFE => key.extend(std::iter::repeat_n(b'x', bytes.next().copied().unwrap_or_default().into())),
            byte => key.push(*byte),
        }
    }
    key
}

fuzz_target!(|data: &[u8]| {
    let keys: BTreeSet<_> = data.split(|byte| *byte == 0).map(key).collect();
    let wrong = fd_s3::wrong_name(&keys);
    assert!(wrong.is_none(), "{wrong:?}");
});
