#![no_main]
//! Every text of greeting and authentication that a peer may send.

use fd_bsock::hello::{
    Challenge, DirectorHello, FirstPacket, StartTls, StorageCall, dedup_block_sizes, is_director_acceptance,
    storage_accepted,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let _ = (FirstPacket::of(line), storage_accepted(line), is_director_acceptance(line), dedup_block_sizes(line));
    let names = [DirectorHello::parse(line).map(|hello| hello.name), StorageCall::parse(line).map(|call| call.job)];
    assert!(names.into_iter().flatten().all(|name| name.len() <= 127));
    if let Some(start) = StartTls::parse(line) {
        assert_eq!(StartTls::parse(&start.encode()), Some(start));
    }
    if let Some(challenge) = Challenge::parse(line) {
        // A challenge without a text can be read, but not written.
        assert!(challenge.text.is_empty() || Challenge::parse(&challenge.encode()) == Some(challenge));
    }
});
