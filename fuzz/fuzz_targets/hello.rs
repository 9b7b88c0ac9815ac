#![no_main]
//! Every text of greeting and authentication: what is understood writes itself so that it is understood again.

use fd_bsock::hello::{
    Challenge, ConsoleHello, DirectorHello, FileDaemonCaps, FirstPacket, RegistrationHello, StartJobHello, StartTls,
    StorageCall, StorageCaps, director_accepted, storage_accepted,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let _ = (FirstPacket::of(line), director_accepted(line), storage_accepted(line));
    // A name may hold what the strict form can't carry (a NUL, other white space), so only plain ones go round.
    let plain = line.iter().all(|byte| byte.is_ascii_graphic() || b" \n".contains(byte));
    macro_rules! round {
        ($($text:ident),*) => {$(
            if let Some(value) = $text::parse(line) {
                let written = value.encode();
                if plain {
                    assert_eq!($text::parse(&written).as_ref(), Some(&value), "{}", written.escape_ascii());
                }
            }
        )*};
    }
    round!(DirectorHello, StartJobHello, RegistrationHello, ConsoleHello, StartTls, Challenge);
    round!(StorageCaps, FileDaemonCaps);
    // Its scanner also takes a call without a name, which can't be written.
    if StorageCall::parse(line).is_some_and(|call| !call.job.is_empty()) {
        round!(StorageCall);
    }
});
